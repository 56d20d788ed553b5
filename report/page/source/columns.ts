/** The bytes that base64 stands for. Source: RFC 4648, section 4. */
export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

/** Reads as many numbers of LEB128 as `numbers` has room for. Numbers may exceed 32 bits, up to 2^53. */
export function readNumbers<Numbers extends Float64Array | Uint32Array | Uint8Array>(base64: string, numbers: Numbers): Numbers {
  const bytes = bytesOf(base64);
  for (let i = 0, at = 0; i < numbers.length; ++i) {
    let number = 0, scale = 1, byte;
    do {
      byte = bytes[at++];
      number += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    numbers[i] = number;
  }
  return numbers;
}

/** The first of ascending numbers that is `least` or greater; their count where none is. */
export function firstFrom(numbers: Float64Array, least: number): number {
  let low = 0, high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
