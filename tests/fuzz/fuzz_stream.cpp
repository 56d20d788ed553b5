// Whatever comes on a data connection, before and after its greeting, does no harm: messages of the greeting are
// refused unless they are what the secret makes, and a call ends done or with an error. The first byte chooses which is
// tried.

#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/tcp/greeting.h"
#include "tests/support/networks/two_ends.h"

namespace {

using namespace espalier;

void read_greeting(std::string_view bytes) {
  const engine::rendezvous::Digest nonce{};
  [[maybe_unused]] const auto hello = engine::decode_hello(bytes);
  const auto claim = engine::decode_claim(bytes, nonce, "a secret of this test");
  if (claim) {
    ESPALIER_CHECK(engine::encode_claim(*claim, nonce, "a secret of this test") == bytes, "a claim has one form");
  }
  [[maybe_unused]] const auto welcome = engine::decode_welcome(bytes, {}, nonce, "a secret of this test");
}

void read_call(std::string_view bytes, bool is_broken_wire) {
  constexpr std::size_t message = 100;
  auto [near, far] = test::connected_pair();
  auto [sender_near, sender_far] = test::connected_pair();
  test::BroadcastEnd receiver(1, std::move(near), message, 40, false);
  receiver.begin(1);
  if (is_broken_wire) {  // A right call, with the input laid over its bytes.
    test::BroadcastEnd sender(0, std::move(sender_near), message, 40, true);
    sender.begin(1);
    sender.advance();
    std::string wire(4096, '\0');
    const ssize_t got = recv(sender_far.get(), wire.data(), wire.size(), 0);
    wire.resize(static_cast<std::size_t>(got));
    for (std::size_t i = 0; i < std::min(bytes.size(), wire.size()); ++i)
      wire[i] = static_cast<char>(wire[i] ^ bytes[i]);
    ESPALIER_CHECK(send(far.get(), wire.data(), wire.size(), MSG_NOSIGNAL) == got, "it fits the socket's buffer");
  } else {
    bytes = bytes.substr(0, 4096);
    [[maybe_unused]] const ssize_t sent = send(far.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  far.reset();
  receiver.advance();
  ESPALIER_CHECK(receiver.is_done() != !receiver.call_error().empty(), "a call ends well or not");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3U) {
    case 0: read_greeting(bytes); break;
    case 1: read_call(bytes, true); break;
    default: read_call(bytes, false);
  }
  return 0;
}
