#include "engine/cuda/device/kernel_part.h"

#include <algorithm>

namespace espalier::engine::cuda {

Result<std::byte*> KernelPart::allocate(std::int64_t bytes, MemorySpace space) {
  const auto data = gpu->allocate(std::max<std::int64_t>(bytes, 1), space);
  if (data) memories.emplace_back(*data, bytes);
  return data;
}

void KernelPart::release() {
  for (const auto& [data, bytes] : memories) gpu->release(data, bytes);
  memories.clear();
}

Result<std::byte*> KernelPart::upload_bytes(std::span<const std::byte> bytes) {
  const auto data = allocate(static_cast<std::int64_t>(bytes.size()), MemorySpace::device);
  if (!data || bytes.empty()) return data;
  constexpr std::chrono::seconds longest_upload{60};
  const Driver& driver = gpu->driver();
  gpu->make_current();
  auto done = driver.check(driver.api().copy(reinterpret_cast<DeviceAddress>(*data),
                                             reinterpret_cast<DeviceAddress>(bytes.data()), bytes.size(), stream),
                           "upload a program");
  if (done) done = gpu->await(stream, longest_upload, "upload a program");
  if (!done) return tl::unexpected(done.error());
  return data;
}

Result<void> KernelPart::upload_program(const KernelProgram& program, std::span<const KernelBlock> own) {
  const auto blocks = upload(own);
  if (!blocks) return tl::unexpected(blocks.error());
  const auto steps = upload(std::span<const KernelStep>(program.steps));
  if (!steps) return tl::unexpected(steps.error());
  const auto pieces = upload(std::span<const KernelPiece>(program.pieces));
  if (!pieces) return tl::unexpected(pieces.error());
  const auto waits = upload(std::span<const KernelWait>(program.waits));
  if (!waits) return tl::unexpected(waits.error());
  const auto destinations = upload(std::span<const KernelDestination>(program.destinations));
  if (!destinations) return tl::unexpected(destinations.error());
  const auto targets = upload(std::span<const KernelTarget>(program.targets));
  if (!targets) return tl::unexpected(targets.error());
  const auto progress =
      allocate(static_cast<std::int64_t>(program.blocks.size() * sizeof(KernelProgress)), MemorySpace::device);
  if (!progress) return tl::unexpected(progress.error());
  call.blocks = *blocks;
  call.steps = *steps;
  call.pieces = *pieces;
  call.waits = *waits;
  call.destinations = *destinations;
  call.targets = *targets;
  call.progress = reinterpret_cast<KernelProgress*>(*progress);
  block_count = static_cast<std::uint32_t>(own.size());
  return {};
}

}  // namespace espalier::engine::cuda
