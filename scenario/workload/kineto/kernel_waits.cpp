#include "scenario/workload/kineto/kernel_waits.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

namespace espalier::scenario {
namespace {

constexpr std::size_t no_kernel = std::numeric_limits<std::size_t>::max();
constexpr double before_all_time = -std::numeric_limits<double>::infinity();

}  // namespace

KernelWaits::KernelWaits(std::vector<KernelRun> kernels, const std::vector<HostCall>& calls,
                         std::vector<RecordedWait> recorded, WaitReading reading)
    : kernels_(std::move(kernels)),
      launches_(kernels_.size(), before_all_time),
      previous_(kernels_.size(), no_kernel),
      recorded_(std::move(recorded)),
      reading_(reading) {
  const auto is_of_streams = [](const RecordedWait& wait) {
    return wait.kind == RecordedWait::Kind::stream_waits_for_event;
  };
  if (std::ranges::none_of(recorded_, is_of_streams)) recorded_.clear();  // The record is not of streams then.
  std::ranges::stable_sort(recorded_, {}, &RecordedWait::correlation);
  std::unordered_map<std::int64_t, double> begins;
  for (const HostCall& call : calls) {
    begins.emplace(call.correlation, call.begin);
    const bool is_for_all = call.name == "cudaDeviceSynchronize" || call.name == "cuCtxSynchronize";
    if (is_for_all || call.name.find("StreamSynchronize") != std::string::npos ||
        call.name.find("EventSynchronize") != std::string::npos) {
      host_waits_.push_back({call.begin, call.end, is_for_all});
    }
  }
  std::ranges::stable_sort(host_waits_, {}, &HostWait::end);
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    const auto call = begins.find(kernels_[i].correlation);
    if (kernels_[i].correlation >= 0 && call != begins.end()) launches_[i] = std::min(call->second, kernels_[i].begin);
    std::vector<std::size_t>& stream = streams_[kernels_[i].stream].kernels;
    if (!stream.empty()) previous_[i] = stream.back();
    stream.push_back(i);
  }
}

std::vector<std::size_t> KernelWaits::of(std::size_t kernel) {
  std::vector<std::size_t> waits;
  if (previous_[kernel] != no_kernel) waits.push_back(previous_[kernel]);
  is_recorded() ? add_recorded(kernel, waits) : add_read(kernel, waits);
  std::ranges::sort(waits, {}, [&](std::size_t one) { return std::pair(kernels_[one].stream, one); });
  const auto repeated = std::ranges::unique(waits);
  waits.erase(repeated.begin(), repeated.end());
  return waits;
}

void KernelWaits::add_recorded(std::size_t kernel, std::vector<std::size_t>& waits) const {
  const KernelRun& run = kernels_[kernel];
  const std::int64_t since = previous_[kernel] == no_kernel ? -1 : kernels_[previous_[kernel]].correlation;
  const auto add = [&](std::size_t before) {
    if (before != no_kernel && kernels_[before].end <= run.begin) waits.push_back(before);
  };
  // What its stream waited for before the kernel ahead of it, that one has waited for.
  for (auto wait = std::ranges::upper_bound(recorded_, since, {}, &RecordedWait::correlation);
       wait != recorded_.end() && wait->correlation < run.correlation; ++wait) {
    switch (wait->kind) {
      case RecordedWait::Kind::stream_waits_for_event:
        if (wait->stream == run.stream) add(last_launched(wait->on_stream, wait->recorded, kernel));
        break;
      case RecordedWait::Kind::host_waits_for_event: add(last_launched(wait->on_stream, wait->recorded, kernel)); break;
      case RecordedWait::Kind::host_waits_for_stream:
        add(last_launched(wait->stream, wait->correlation, kernel));
        break;
      case RecordedWait::Kind::host_waits_for_all:
        for (const auto& [stream, _] : streams_) add(last_launched(stream, wait->correlation, kernel));
        break;
    }
  }
}

void KernelWaits::add_read(std::size_t kernel, std::vector<std::size_t>& waits) {
  const KernelRun& run = kernels_[kernel];
  const std::size_t previous = previous_[kernel];
  const double idle_since =
      std::max(previous == no_kernel ? before_all_time : kernels_[previous].end, launches_[kernel]);
  const HostWait* const host = host_wait_before(launches_[kernel]);
  Stream& own = streams_.at(run.stream);
  for (const auto& [number, stream] : streams_) {
    if (number == run.stream) continue;
    const std::size_t ended = last_ended(stream, run.begin, kernel);
    if (ended == no_kernel) continue;
    const auto [known, is_first] = own.last_considered.try_emplace(number, ended);
    const bool is_news = is_first || known->second != ended;
    known->second = ended;
    std::size_t seen = no_kernel;
    if (kernels_[ended].end > idle_since || (run.communicates && !kernels_[ended].communicates)) {
      seen = ended;
    } else if (host != nullptr) {
      seen = last_ended(stream, host->end, kernel);
      if (seen != no_kernel && !host->is_for_all && kernels_[seen].end <= host->begin) seen = no_kernel;
    }
    if (is_news && seen != ended) ++guessed_;
    if (reading_ == WaitReading::most) seen = ended;
    if (seen != no_kernel) waits.push_back(seen);
  }
}

std::size_t KernelWaits::last_ended(const Stream& stream, double time, std::size_t before) const {
  // Kernels of a stream follow each other, so that all before one that has ended have ended.
  auto place = std::ranges::upper_bound(stream.kernels, time, {}, [&](std::size_t one) { return kernels_[one].end; });
  const std::int64_t launched = kernels_[before].correlation;
  while (place != stream.kernels.begin()) {
    const std::size_t one = *--place;
    const bool is_later = launched >= 0 && kernels_[one].correlation > launched;
    if (one < before && !is_later) return one;
  }
  return no_kernel;
}

std::size_t KernelWaits::last_launched(std::int64_t stream, std::int64_t correlation, std::size_t before) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return no_kernel;
  const auto& kernels = found->second.kernels;
  auto place =
      std::ranges::lower_bound(kernels, correlation, {}, [&](std::size_t one) { return kernels_[one].correlation; });
  while (place != kernels.begin()) {
    if (const std::size_t one = *--place; one < before) return one;
  }
  return no_kernel;
}

const KernelWaits::HostWait* KernelWaits::host_wait_before(double launch) const {
  const auto place = std::ranges::upper_bound(host_waits_, launch, {}, &HostWait::end);
  return place == host_waits_.begin() ? nullptr : &*std::prev(place);
}

}  // namespace espalier::scenario
