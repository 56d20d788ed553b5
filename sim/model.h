#pragma once

// Tested by: tests/unit/sim/model_test.cpp

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/conditions.h"
#include "sim/core/waits.h"
#include "sim/limits.h"

namespace espalier::sim {

class History;

struct RunOptions {
  Bytes size;                     ///< Message size S.
  Bytes chunk;                    ///< Largest chunk; at least one element.
  std::int64_t element_size = 4;  ///< Bytes per element.
  /// The part of what is on the wire that is payload, in millionths; the rest is a protocol's flags.
  std::int32_t payload_ppm = 1'000'000;
  std::uint32_t ahead = 0;  ///< Pacing::ahead; at most max_ahead.
};

/// A rank is through with a run: everything it sends has left and everything sent to it is there (and added).
struct RankEnd {
  RunId run;
  Rank rank;  ///< Of the run's collective.
  std::int64_t time = 0;
};

/// What one link did: bytes carried and time busy.
struct LinkUse {
  std::int64_t bytes = 0;
  Picoseconds busy;
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// A network and the runs on it. Runs begin and end while others are under way; how they share links is what the models
/// differ in. Time only goes forward: it is the latest of all `enter` calls' moments that were handled and of
/// `advance`. Deterministic: the same calls give the same answers.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  /// Adds a run. Nothing of it moves before ranks enter; a transfer waits for its source and its destination.
  /// Ranks that move nothing are through with it when they enter. Runs that ask at the same moment go in their order.
  /// Requires: a compiled schedule of this network that outlives the run; schedules are told apart by their addresses,
  /// so none may take the place of another while runs are added.
  /// Errors: too_large past the limits of sim/core/workload.h; invalid_input when the size does not fit the layout.
  [[nodiscard]] virtual Result<RunId> add(const CompiledSchedule& compiled, const RunOptions& options) = 0;

  /// The rank takes part from `time` on. Requires: once per run and rank; `time` not before the model's
  /// time and at most `latest_entry`.
  virtual void enter(RunId run, Rank rank, std::int64_t time) = 0;

  /// As `enter` for every rank of a run. Requires: none of them has entered.
  virtual void enter_all(RunId run, std::int64_t time) = 0;

  /// Gives a run up: nothing of it begins any more, and none of its ranks ends. What a link has taken it still carries.
  virtual void abort(RunId run) = 0;

  /// Records all chunks of a run from here on (sim/core/history.h). Requires: no rank has entered it.
  /// Errors: too_large past max_recorded_steps.
  [[nodiscard]] virtual Result<void> record(RunId run) = 0;

  /// Hands over what was recorded of a run; nothing more is. Requires: `record` was called for it.
  [[nodiscard]] virtual std::unique_ptr<History> take_history(RunId run) = 0;

  /// Finds out who is in the way where and when these say. Requires: before all runs; waits of a model of this kind on
  /// this network that the same calls were made to, which then give the same again.
  /// Cost: O(log waits) per chunk; in the model fair O(flows on the way) for every moment of a flow that is held back.
  virtual void probe(std::span<const Probe> probes) = 0;

  /// Who was, in the order of the waits; of each wait at most its length together.
  [[nodiscard]] virtual std::vector<Blame> blames() const = 0;

  /// When something happens next; `never` when nothing will without another call.
  [[nodiscard]] virtual std::int64_t next_time() const = 0;

  /// Handles everything of `next_time()`, which becomes the model's time. Appends the ranks that are through with a
  /// run; their times may lie ahead. Requires: next_time() is not `never`.
  virtual void advance(std::vector<RankEnd>& ended) = 0;

  /// Everything up to `time` was advanced: what enters from here on comes after it, whatever its order. Only models
  /// that remember runs need to be told (sim/link/remembering_model.h). Requires: next_time() is later.
  virtual void pass(std::int64_t /*time*/) {}

  /// By link id, so far (what is known to be carried, which may reach ahead of the model's time).
  [[nodiscard]] virtual std::vector<LinkUse> links() const = 0;

  /// How many times a link, backplane or reduction served a chunk, so far.
  [[nodiscard]] virtual std::uint64_t events() const = 0;
};

enum class ModelKind : std::uint8_t {
  link,  ///< Links serve chunks first come, first served (docs/simulator.md).
  fair,  ///< Flows share links max-min fairly (docs/fair.md).
};

inline constexpr std::array all_models = {ModelKind::link, ModelKind::fair};

/// "link".
std::string_view to_string(ModelKind kind);

/// Errors: invalid_input, with the nearest name.
Result<ModelKind> parse_model(std::string_view name);

/// Requires: conditions that passed `check_conditions` for the network's topology; a network that outlives the model.
[[nodiscard]] std::unique_ptr<Model> make_model(ModelKind kind, const Network& network, const Conditions& conditions);

}  // namespace espalier::sim
