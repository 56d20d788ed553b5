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
#ifdef ESPALIER_VERBS
  if (options.transport == TransportChoice::verbs) {
    VerbsOptions verbs = options.verbs;
    verbs.connections = options.sockets_per_peer;
    transports.push_back(std::make_unique<VerbsTransport>(control, peers, options.rendezvous.secret, std::move(verbs)));
    return transports;
  }
#endif
  if (options.transport != TransportChoice::tcp) {
    transports.push_back(std::make_unique<ShmTransport>(control, peers, is_oversubscribed));
  }
  if (options.transport != TransportChoice::shm) {
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
