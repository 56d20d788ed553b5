#include "sim/link/lone_answers.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/link/link_model.h"

namespace espalier::sim {
namespace {

/// All that a run depends on beside its options, with the resources numbered.
std::vector<std::int64_t> describe(const CompiledSchedule& compiled, const std::vector<std::uint32_t>& numbers,
                                   const std::vector<Resource>& resources) {
  const Schedule& schedule = compiled.schedule();
  std::vector<std::int64_t> form;
  const auto add = [&](auto... values) { (form.push_back(static_cast<std::int64_t>(values)), ...); };
  const Collective& collective = schedule.collective;
  add(collective.kind, collective.rank_count, collective.root.value(), collective.shares.size());
  form.insert(form.end(), collective.shares.begin(), collective.shares.end());
  add(schedule.relays.size(), schedule.units, schedule.slices.size(), schedule.route_count(), resources.size());
  for (const Slice& slice : schedule.slices) add(slice.offset, slice.length, slice.rank.value(), slice.to.value());
  for (const Transfer& transfer : schedule.transfers) {
    add(transfer.first_slice.value(), transfer.slice_count, transfer.route.value(), transfer.channel_value,
        transfer.action());
  }
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const Path& path = compiled.paths()[i];
    add(schedule.route(RouteId(i)).src.value(), schedule.route(RouteId(i)).dst.value(), path.begin, path.first_link,
        path.last_link, path.end, path.reduce_end, path.overhead);
  }
  form.insert(form.end(), numbers.begin(), numbers.end());
  for (const Resource& resource : resources) add(resource.bytes_per_second, resource.latency, resource.each);
  return form;
}

}  // namespace

/// Where the ways in which ranks come never repeat, memory is not spent on them: what is known is forgotten when it is
/// too much.
std::shared_ptr<LoneAnswer> LoneAnswers::root() {
  constexpr std::size_t max_size = 20'000'000;
  if (root_ == nullptr || size_ > max_size) {
    root_ = std::make_shared<LoneAnswer>();
    size_ = 0;
  }
  return root_;
}

LoneAnswers::Options LoneAnswers::options_of(const LoneMember& member) {
  const RunOptions& options = member.options;
  return {options.size.count, options.chunk.count, options.element_size, options.payload_ppm, options.ahead};
}

const LoneAnswers::Form& LoneAnswers::form_of(const CompiledSchedule& compiled) {
  const auto [at, is_new] = forms_.try_emplace(&compiled);
  Form& form = at->second;
  if (!is_new) return form;
  std::map<std::uint32_t, std::uint32_t> number_of;
  std::vector<std::uint32_t> numbers;
  std::vector<Resource> resources;
  for (const std::uint32_t resource : compiled.steps()) {
    const auto [number, is_first] = number_of.try_emplace(resource, static_cast<std::uint32_t>(number_of.size()));
    if (is_first) resources.push_back(network_.resources()[resource]);
    numbers.push_back(number->second);
  }
  form.resources.assign(number_of.begin(), number_of.end());
  // Large ones are told apart by their addresses.
  constexpr std::size_t max_transfers = 200'000;
  auto key = compiled.schedule().transfers.size() > max_transfers
                 ? std::vector<std::int64_t>{static_cast<std::int64_t>(forms_.size())}
                 : describe(compiled, numbers, resources);
  form.index =
      form_indices_.try_emplace(std::move(key), static_cast<std::uint32_t>(form_indices_.size())).first->second;
  return form;
}

std::uint32_t LoneAnswers::kind_of(const LoneMember& member) {
  const std::pair key(form_of(*member.compiled).index, options_of(member));
  return kinds_.try_emplace(key, static_cast<std::uint32_t>(kinds_.size())).first->second;
}

/// Where two schedules meet.
std::uint32_t LoneAnswers::overlap_of(const CompiledSchedule& one, const CompiledSchedule& other) {
  const auto [at, is_new] = overlaps_.try_emplace({&one, &other});
  if (!is_new) return at->second;
  const Numbered& of_one = form_of(one).resources;
  Numbered both;
  for (const auto& [resource, number] : form_of(other).resources) {
    const auto found = std::ranges::lower_bound(of_one, resource, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
    if (found != of_one.end() && found->first == resource) both.emplace_back(found->second, number);
  }
  std::ranges::sort(both);
  const auto next = static_cast<std::uint32_t>(overlap_indices_.size());
  return at->second = overlap_indices_.try_emplace(std::move(both), next).first->second;
}

LoneAnswer& LoneAnswers::step(LoneAnswer& from, std::span<const LoneMember> members, std::size_t joined,
                              std::span<const std::size_t> places, std::vector<LoneEntry> entries) {
  // Ranks that enter in one turn do so in any order.
  std::ranges::sort(entries, {},
                    [](const LoneEntry& each) { return std::tuple(each.turn, each.time, each.member, each.rank); });
  std::vector<std::int64_t> key;
  key.push_back(static_cast<std::int64_t>(members.size() - joined));
  for (std::size_t i = joined; i < members.size(); ++i) {
    key.push_back(kind_of(members[i]));
    key.push_back(static_cast<std::int64_t>(places[i - joined]));
    for (const LoneMember& earlier : members.first(i)) {
      key.push_back(overlap_of(*earlier.compiled, *members[i].compiled));
    }
  }
  constexpr unsigned rank_bits = 32;
  for (const LoneEntry& entry : entries) {
    key.push_back((std::int64_t{entry.member} << rank_bits) | static_cast<std::int64_t>(entry.rank.index()));
    key.push_back(entry.time);
    key.push_back(2 * entry.now + (&entry != entries.data() && entry.turn != (&entry - 1)->turn ? 1 : 0));
  }
  const std::size_t size = key.size();
  const auto [at, is_new] = from.next.try_emplace(std::move(key));
  if (is_new) {
    constexpr std::size_t size_of_answer = 32;
    size_ += size + size_of_answer;
    at->second = std::make_unique<LoneAnswer>();
  }
  return *at->second;
}

const LoneLoad& LoneAnswers::load(const LoneMember& member) {
  LoneLoad& load = loads_[{member.compiled, options_of(member)}];
  if (load.events > 0) return load;
  LinkModel model(network_, Conditions{});
  const auto run = model.add(*member.compiled, member.options);
  ESPALIER_CHECK(run.has_value(), "what was added before can be added again");
  model.enter_all(*run, 0);
  std::vector<RankEnd> ended;
  while (model.next_time() != never) model.advance(ended);
  for (std::uint32_t i = 0; i < model.servers().size(); ++i) {
    const Server& server = model.servers()[i];
    if (server.bytes > 0 || server.busy > 0) load.uses.push_back({i, {server.bytes, {server.busy}}});
  }
  load.events = model.events();
  return load;
}

}  // namespace espalier::sim
