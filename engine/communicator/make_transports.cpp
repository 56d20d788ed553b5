#include "engine/communicator/make_transports.h"

#include "engine/shm/shm_transport.h"
#include "engine/tcp/tcp_transport.h"
#ifdef ESPALIER_VERBS
#include "engine/verbs/verbs_transport.h"
#endif

namespace espalier::engine {

std::vector<std::unique_ptr<Transport>> make_transports(rendezvous::ControlPlane& control,
                                                        const std::vector<rendezvous::PeerInfo>& peers,
                                                        const JobOptions& options, bool is_oversubscribed) {
  std::vector<std::unique_ptr<Transport>> transports;
  if (takes_shared_memory(options.transport)) {
    transports.push_back(std::make_unique<ShmTransport>(control, peers, is_oversubscribed));
  }
#ifdef ESPALIER_VERBS
  if (takes_verbs(options.transport)) {
    VerbsOptions verbs = options.verbs;
    verbs.connections = options.sockets_per_peer;
    transports.push_back(std::make_unique<VerbsTransport>(control, peers, options.rendezvous.secret, std::move(verbs)));
  }
#endif
  if (takes_tcp(options.transport)) {
    transports.push_back(std::make_unique<TcpTransport>(
        control, peers,
        TcpTransport::Options{options.rendezvous.secret, options.checksum, options.sockets_per_peer, options.routes}));
  }
  return transports;
}

bool has_verbs() {
#ifdef ESPALIER_VERBS
  return VerbsDevice::is_any_active();
#else
  return false;
#endif
}

}  // namespace espalier::engine
