#include <algorithm>
#include <sstream>

#include "python/bind/bindings.h"
#include "schedule/json/schedule_json.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"

namespace espalier::python {
namespace {

py::dtype structure(const char* names, const char* formats, std::initializer_list<std::size_t> offsets,
                    std::size_t size) {
  const auto words = [](const char* text) {
    py::list list;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) list.append(word);
    return list;
  };
  py::list at;
  for (const std::size_t offset : offsets) at.append(offset);
  return py::dtype(words(names), words(formats), at, static_cast<py::ssize_t>(size));
}

py::dtype transfer_type() {
  return structure("first_slice slice_count route channel_and_reduces", "u4 u4 u4 u4",
                   {offsetof(Transfer, first_slice), offsetof(Transfer, slice_count), offsetof(Transfer, route), 12},
                   sizeof(Transfer));
}

py::dtype slice_type() {
  return structure("offset length rank to", "i8 i8 u4 u4",
                   {offsetof(Slice, offset), offsetof(Slice, length), offsetof(Slice, rank), offsetof(Slice, to)},
                   sizeof(Slice));
}

using Whole = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

std::size_t checked(std::int64_t value, std::size_t limit, const char* what, py::ssize_t row) {
  if (value >= 0 && static_cast<std::size_t>(value) < limit) return static_cast<std::size_t>(value);
  throw ErrorRaised(
      {ErrorCode::invalid_input,
       std::string(what) + " " + std::to_string(value) + " in row " + std::to_string(row) + " is out of range",
       "there are " + std::to_string(limit)});
}

void check_columns(const Whole& rows, py::ssize_t columns, const char* what) {
  if (rows.ndim() == 2 && rows.shape(1) == columns) return;
  throw ErrorRaised({ErrorCode::invalid_input,
                     std::string(what) + " is not an array of " + std::to_string(columns) + " columns",
                     "give rows of " + std::to_string(columns) + " whole numbers"});
}

/// Rank, or none for -1.
Rank rank_or_none(std::int64_t value, const Topology& topology, py::ssize_t row) {
  return value == -1 ? Rank() : Rank(checked(value, topology.rank_count(), "rank", row));
}

Plan build(std::shared_ptr<Topology> topology, const std::string& collective, std::optional<std::int64_t> root,
           std::int64_t units, const Whole& slices, const py::list& routes, const Whole& transfers,
           const std::string& algorithm) {
  check_columns(slices, 4, "slices");
  check_columns(transfers, 5, "transfers");
  Plan plan{topology, Schedule(collective_on(*topology, collective, root), topology->name(), algorithm), false};
  Schedule& schedule = plan.schedule;
  if (units < 1 || units > max_units) {
    throw ErrorRaised({ErrorCode::invalid_input, "units are from 1 to 2^62", ""});
  }
  schedule.units = units;
  const auto slice = slices.unchecked<2>();
  for (py::ssize_t i = 0; i < slices.shape(0); ++i) {
    schedule.slices.push_back(
        {slice(i, 0), slice(i, 1), rank_or_none(slice(i, 2), *topology, i), rank_or_none(slice(i, 3), *topology, i)});
  }
  std::vector<RouteId> ids;
  for (const py::handle& item : routes) {
    const auto [src, dst, links] = item.cast<std::tuple<std::int64_t, std::int64_t, std::vector<std::int64_t>>>();
    const auto row = static_cast<py::ssize_t>(ids.size());
    std::vector<LinkId> path;
    for (const std::int64_t link : links) path.emplace_back(checked(link, topology->link_count(), "link", row));
    ids.push_back(schedule.add_route(Rank(checked(src, topology->rank_count(), "rank", row)),
                                     Rank(checked(dst, topology->rank_count(), "rank", row)), path));
  }
  const auto transfer = transfers.unchecked<2>();
  for (py::ssize_t i = 0; i < transfers.shape(0); ++i) {
    const RouteId route = ids[checked(transfer(i, 2), ids.size(), "route", i)];
    const std::size_t first = checked(transfer(i, 0), schedule.slices.size(), "slice", i);
    const std::size_t count = checked(transfer(i, 1), schedule.slices.size() - first + 1, "slice count", i);
    const std::size_t channel = checked(transfer(i, 3), max_channels, "channel", i);
    const std::size_t action = checked(transfer(i, 4), 3, "action", i);
    schedule.add_transfer(route, SliceId(first), static_cast<std::uint32_t>(count), static_cast<Action>(action),
                          ChannelId(channel));
  }
  return plan;
}

/// The JSON form, of which structures alone are written that can be read.
std::string json_of(const Plan& plan, bool embed_network) {
  if (!plan.is_verified) value_of(require_structure(plan.schedule, *plan.topology, "the schedule"));
  std::ostringstream out;
  value_of(write_schedule(out, plan.schedule, *plan.topology, {.embed_network = embed_network}));
  return out.str();
}

Plan plan_of(const std::string& json) {
  PlanFile file = value_of(read_plan(json, "text"));
  return {std::make_shared<const Topology>(std::move(file.topology)), std::move(file.schedule), false};
}

py::list breaches_of(const Plan& plan, std::size_t most) {
  VerifyReport report;
  {
    const py::gil_scoped_release release;
    report = verify(plan.schedule, *plan.topology, most);
  }
  py::list breaches;
  for (const Breach& breach : report.breaches) {
    const py::object transfer =
        breach.transfer.is_none() ? py::object(py::none()) : py::object(py::int_(breach.transfer.index()));
    breaches.append(py::make_tuple(std::string(to_string(breach.rule)), transfer, breach.message));
  }
  return breaches;
}

/// Of a schedule whose structure is right.
Loads checked_loads(const Plan& plan) {
  if (!plan.is_verified) value_of(require_structure(plan.schedule, *plan.topology, "the schedule"));
  return compute_loads(plan.schedule, *plan.topology);
}

py::object matrix_of(const Plan& plan) {
  const Collective& collective = plan.schedule.collective;
  if (!collective.has_matrix()) return py::none();
  const auto ranks = static_cast<py::ssize_t>(collective.rank_count);
  py::array_t<std::int64_t> matrix({ranks, ranks});
  std::ranges::copy(collective.shares, matrix.mutable_data());
  return matrix;
}

/// Units per link, as parts of the buffer that the units stand for.
py::array_t<double> loads_of(const Plan& plan) {
  const Loads loads = checked_loads(plan);
  py::array_t<double> result(static_cast<py::ssize_t>(loads.link_units.size()));
  auto out = result.mutable_unchecked<1>();
  const double extent = to_double(plan.schedule.collective.extent());
  for (std::size_t i = 0; i < loads.link_units.size(); ++i) {
    out(static_cast<py::ssize_t>(i)) =
        static_cast<double>(loads.link_units[i]) / static_cast<double>(plan.schedule.units) * extent;
  }
  return result;
}

py::list routes_of(const Plan& plan) {
  py::list routes;
  for (std::size_t i = 0; i < plan.schedule.route_count(); ++i) {
    const Route route = plan.schedule.route(RouteId(i));
    py::list links;
    for (const LinkId link : route.links) links.append(link.index());
    routes.append(py::make_tuple(route.src.index(), route.dst.index(), links));
  }
  return routes;
}

}  // namespace

const Schedule& verified(const Plan& plan) {
  if (!plan.is_verified) {
    Result<void> result;
    {
      const py::gil_scoped_release release;
      result = require_verified(plan.schedule, *plan.topology, "the schedule");
    }
    value_of(std::move(result));
    plan.is_verified = true;
  }
  return plan.schedule;
}

void bind_schedule(py::module_& module) {
  py::class_<Plan>(module, "Schedule")
      .def_static("_build", &build, py::arg("topology"), py::arg("collective"), py::arg("root"), py::arg("units"),
                  py::arg("slices"), py::arg("routes"), py::arg("transfers"), py::arg("algorithm") = "python")
      .def_static("from_json", &plan_of, py::arg("text"), "A plan in the JSON form of docs/schedule.md.")
      .def("to_json", [](const Plan& plan) { return json_of(plan, true); })
      .def(py::pickle(
          [](const Plan& plan) {
            return py::make_tuple(std::const_pointer_cast<Topology>(plan.topology), json_of(plan, false), plan.planner,
                                  plan.gpu);
          },
          [](const py::tuple& state) {
            auto topology = state[0].cast<std::shared_ptr<Topology>>();
            PlanFile file = value_of(read_plan(state[1].cast<std::string>(), "a pickle", topology.get()));
            return Plan{std::move(topology), std::move(file.schedule), false, state[2].cast<std::string>(),
                        state[3].cast<std::string>()};
          }))
      .def("_breaches", &breaches_of, py::arg("most") = 100)
      .def_property_readonly(
          "slices",
          [](const py::object& self) { return view_of(slice_type(), self.cast<const Plan&>().schedule.slices, self); },
          "Read-only view: offset and length in units, rank and to (2^32 - 1: none).")
      .def_property_readonly(
          "transfers",
          [](const py::object& self) {
            return view_of(transfer_type(), self.cast<const Plan&>().schedule.transfers, self);
          },
          "Read-only view in program order: first_slice, slice_count, route, channel_and_reduces (the top bit: "
          "reduces; the next one: reads the input, as reduce_input does).")
      .def_property_readonly("routes", &routes_of, "[(source rank, destination rank, [link ids])].")
      .def_property_readonly("link_loads", &loads_of, "What each link carries, in parts of the message size S.")
      .def_property_readonly("units", [](const Plan& plan) { return plan.schedule.units; })
      .def_property_readonly("collective",
                             [](const Plan& plan) { return std::string(to_string(plan.schedule.collective.kind)); })
      .def_property_readonly("root",
                             [](const Plan& plan) -> py::object {
                               if (plan.schedule.collective.root.is_none()) return py::none();
                               return py::int_(plan.schedule.collective.root.index());
                             })
      .def_property_readonly(
          "shares",
          [](const Plan& plan) {
            const Collective& collective = plan.schedule.collective;
            return collective.has_matrix() ? std::vector<std::int64_t>() : collective.shares;
          },
          "Of unequal shards, without their common factor; none where they are equal.")
      .def_property_readonly("matrix", &matrix_of,
                             "Of unequal blocks, what each rank sends to each, without their common factor; None where "
                             "they are equal.")
      .def_property_readonly("algorithm", [](const Plan& plan) { return plan.schedule.algorithm; })
      .def_property_readonly(
          "planner", [](const Plan& plan) { return plan.planner.empty() ? plan.schedule.algorithm : plan.planner; },
          "The algorithm as tables print it, such as \"packing/h2t3\" or \"nccl/ring\"; files keep the algorithm "
          "alone.")
      .def_property_readonly("topology",
                             [](const Plan& plan) { return std::const_pointer_cast<Topology>(plan.topology); })
      .def_property_readonly(
          "load_time", [](const Plan& plan) { return fraction_of(checked_loads(plan).time_per_byte); },
          "Seconds per byte of S that the fullest link needs, exactly.");
}

}  // namespace espalier::python
