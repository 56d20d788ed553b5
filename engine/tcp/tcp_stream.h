#pragma once

// Tested by: tests/unit/engine/communicator/direct_call_test.cpp

#include <cstdint>
#include <memory>

#include "base/file_descriptor.h"
#include "engine/transport/stream_end.h"

namespace espalier::engine {

struct TcpOptions {
  bool checksum = false;  ///< A CRC32C over the bytes of every chunk.
};

/// The ends of a stream over a connected socket that carries nothing else. `rank` and `peer` are members, for errors.
///
/// Each op is a frame: 32 bytes of header that name the call, transfer and chunk, then the bytes. A call begins with a
/// frame that says what the rank called. The receiver knows each frame before it comes and reads it in one go to where
/// the bytes belong; anything else than what it expects ends the call.
std::unique_ptr<Sender> make_tcp_sender(FileDescriptor socket, std::uint32_t peer, const TcpOptions& options);
std::unique_ptr<Receiver> make_tcp_receiver(FileDescriptor socket, std::uint32_t rank, std::uint32_t peer);

}  // namespace espalier::engine
