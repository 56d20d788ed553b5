// Any bytes are read without harm, in frames of any cut; what is read as a message and written again reads back equal.
// The first byte says how large a frame may be and in which pieces the bytes arrive.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/rendezvous/peers.h"
#include "engine/rendezvous/wire/frame.h"
#include "engine/rendezvous/wire/messages.h"

namespace {

using namespace espalier;

template <class Message>
void expect_stable(const Result<Message>& message, std::string_view bytes) {
  if (message) ESPALIER_CHECK(engine::rendezvous::encode(*message) == bytes, "a message has one form");
}

void read_payload(std::string_view bytes) {
  expect_stable(engine::rendezvous::decode_hello(bytes), bytes);
  expect_stable(engine::rendezvous::decode_claim(bytes), bytes);
  expect_stable(engine::rendezvous::decode_welcome(bytes), bytes);
  expect_stable(engine::rendezvous::decode_refusal(bytes), bytes);
  expect_stable(engine::rendezvous::decode_put(bytes), bytes);
  expect_stable(engine::rendezvous::decode_failure(bytes), bytes);
  expect_stable(engine::rendezvous::decode_ping(bytes), bytes);
  if (const auto gathered = engine::rendezvous::decode_gathered(bytes)) {
    ESPALIER_CHECK(engine::rendezvous::encode_gathered_id(gathered->id) +
                           engine::rendezvous::encode_gathered_body(gathered->blobs) ==
                       bytes,
                   "a message has one form");
  }
  if (const auto peer = engine::rendezvous::decode_peer(bytes))
    ESPALIER_CHECK(engine::rendezvous::encode_peer(*peer) == bytes, "a PeerInfo has one form");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = 1 + data[0] % 64U;
  engine::rendezvous::FrameReader reader(data[0] >= 128 ? engine::rendezvous::largest_greeting : 64);
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    reader.append(stream.substr(at, piece));
    while (true) {
      const auto frame = reader.next();
      if (!frame) {
        ESPALIER_CHECK(!reader.next().has_value(), "what is no frame stays none");
        read_payload(stream);
        return 0;
      }
      if (!*frame) break;
      read_payload((*frame)->payload);
    }
  }
  read_payload(stream);
  return 0;
}
