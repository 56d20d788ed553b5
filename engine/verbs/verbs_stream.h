#pragma once

// Tested by: tests/unit/engine/verbs/verbs_transport_test.cpp

#include <cstdint>
#include <memory>

#include "base/file_descriptor.h"
#include "engine/transport/stream_end.h"
#include "engine/transport/transport.h"
#include "engine/verbs/queue_pair.h"

namespace espalier::engine {

/// The ends of a stream over a queue pair. `rank` and `peer` are ranks of the job, for errors.
///
/// Each op is one frame or more, of a slot each: a header that names call, transfer and chunk, then bytes. The receiver
/// copies them to where they belong, or shows them in the slot, and returns the slots as credits. Where the memory at
/// both ends is registered with `transport`, bytes that are only moved are written to where they belong, and a frame
/// without them follows; bytes that are added are read from where they are.
///
/// The sender has sent its address on the socket; the answer comes there, and connects it.
std::unique_ptr<Sender> make_verbs_sender(const Transport& transport, VerbsDevice& device,
                                          std::unique_ptr<QueuePair> pair, FileDescriptor socket, std::uint32_t peer);
/// `pair` is connected.
std::unique_ptr<Receiver> make_verbs_receiver(const Transport& transport, VerbsDevice& device,
                                              std::unique_ptr<QueuePair> pair, std::uint32_t rank, std::uint32_t peer);

}  // namespace espalier::engine
