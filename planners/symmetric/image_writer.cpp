#include "planners/symmetric/image_writer.h"

#include <string>
#include <utility>

namespace espalier::planners {

ImageWriter::ImageWriter(const SymmetricPlan& plan, const Topology& topology)
    : plan_(&plan),
      edge_of_(topology.link_count()),
      channels_(plan.collective.rank_count),
      whole_(plan.collective, plan.part.topology, plan.part.algorithm) {
  const OrbitGraph& orbits = *plan.orbits;
  const Schedule& part = plan.part;
  const std::uint32_t n = plan.collective.rank_count;
  whole_.units = part.units * n;
  whole_.bound = plan.bound;
  const bool has_rank = slices_have_rank(plan.collective.kind);
  whole_.slices.reserve(part.slices.size() * n);
  for (std::uint32_t shift = 0; shift < n; ++shift) {
    for (Slice slice : part.slices) {
      slice.offset += part.units * shift;
      if (has_rank) slice.rank = Rank(shift);
      whole_.slices.push_back(slice);
    }
    shifts_.push_back(orbits.automorphisms.at(orbits.automorphism_to[shift]));
  }
  for (std::uint32_t e = 0; e < orbits.graph.edges.size(); ++e) {
    edge_of_[orbits.graph.edges[e].links.front().index()] = e;
  }
}

Result<ImageWriter> ImageWriter::make(const SymmetricPlan& plan, const Topology& topology) {
  const std::uint32_t n = plan.collective.rank_count;
  const Schedule& part = plan.part;
  if (part.units > max_units / n || part.slices.size() > max_slices / n || part.channel_count() > max_channels / n) {
    return fail(ErrorCode::too_large, "the plan of " + std::to_string(n) + " ranks is too large to be written out", "");
  }
  return ImageWriter(plan, topology);
}

void ImageWriter::add(std::size_t index, std::uint32_t shift) {
  const OrbitGraph& orbits = *plan_->orbits;
  const Schedule& part = plan_->part;
  const Transfer& transfer = part.transfers[index];
  const Route route = part.route(transfer.route);
  const Automorphism& there = shifts_[shift];
  std::vector<LinkId> links;
  for (const LinkId link : route.links) {
    links.push_back(orbits.graph.edges[orbits.edge_image(there, edge_of_[link.index()])].links.front());
  }
  const RouteId image = whole_.add_route(Rank(orbits.rank_image(there, route.src.value())),
                                         Rank(orbits.rank_image(there, route.dst.value())), links);
  whole_.add_transfer(image, SliceId(part.slices.size() * shift + transfer.first_slice.index()), transfer.slice_count,
                      transfer.action(), ChannelId(transfer.channel().value() * channels_ + shift));
}

}  // namespace espalier::planners
