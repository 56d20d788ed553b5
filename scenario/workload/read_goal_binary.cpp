#include <fmt/format.h>

#include <cstdint>

#include "scenario/workload/goal_operations.h"
#include "scenario/workload/trace_forms.h"

// The form that LogGOPSim's txt2bin writes and LogGOPSim and ATLAHS run: numbers with their lowest byte first, without
// padding. Behind the magic number stand the count of ranks (4 bytes), the highest cpu and nic (1 each) and a table of
// where each rank begins and ends (8 and 8), counted from behind the magic number. A rank has the counts of operations
// and of those that wait for none (4 and 4), the numbers of the latter (4 each), its operations (39 each) and the lists
// of those that wait for each (4 for a number).
namespace espalier::scenario {
namespace {

constexpr std::uint64_t goal_magic = 4223;
constexpr std::size_t magic_bytes = 8;
constexpr std::size_t head_bytes = 6;
constexpr std::size_t entry_bytes = 16;
constexpr std::size_t operation_bytes = 39;
constexpr std::size_t index_bytes = 4;
constexpr std::uint32_t any = 0xFFFFFFFF;  ///< As the source of a receive, and as its tag.

/// Numbers one behind the other. Requires: there are as many bytes as are taken.
class NumberReader {
 public:
  NumberReader(std::string_view bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  std::uint64_t take(std::size_t width) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[at_ + i])) << (8 * i);
    }
    at_ += width;
    return value;
  }
  std::uint32_t take_index() { return static_cast<std::uint32_t>(take(index_bytes)); }

 private:
  std::string_view bytes_;
  std::size_t at_;
};

/// An operation as the file has it.
struct Record {
  std::uint32_t waits_for = 0;  ///< So many others.
  std::uint8_t type = 0;
  std::uint32_t peer = 0;
  std::uint64_t amount = 0;
  std::uint32_t tag = 0;
  std::uint8_t cpu = 0;
  std::uint32_t followers = 0, first_follower = 0;  ///< Those that `require` it, among the lists.
  std::uint32_t joiners = 0, first_joiner = 0;      ///< Those that `irequire` it.
};

Record take_record(NumberReader& reader) {
  Record record;
  record.waits_for = reader.take_index();
  record.type = static_cast<std::uint8_t>(reader.take(1));
  record.peer = reader.take_index();
  record.amount = reader.take(8);
  record.tag = reader.take_index();
  record.cpu = static_cast<std::uint8_t>(reader.take(1));
  static_cast<void>(reader.take(1));  // The nic: routes are the topology's.
  record.followers = reader.take_index();
  record.first_follower = reader.take_index();
  record.joiners = reader.take_index();
  record.first_joiner = reader.take_index();
  return record;
}

class GoalBinaryReader {
 public:
  GoalBinaryReader(std::string_view bytes, const std::string& name, std::size_t max_ranks)
      : bytes_(bytes.substr(magic_bytes)), name_(name), max_ranks_(max_ranks) {}

  Result<std::vector<std::vector<ChakraNode>>> read() {
    if (bytes_.size() < head_bytes) return bad("it ends within its head");
    const std::uint64_t count = NumberReader(bytes_, 0).take_index();
    if (count == 0) return bad("it has no ranks");
    if (count > max_ranks_) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: it has {} ranks, and there are {} to put it on", name_, count, max_ranks_));
    }
    if ((bytes_.size() - head_bytes) / entry_bytes < count) return bad("it ends within its table of ranks");
    ranks_.resize(count);
    NumberReader table(bytes_, head_bytes);
    std::uint64_t end_before = head_bytes + entry_bytes * count;
    for (std::size_t rank = 0; rank < count; ++rank) {
      const std::uint64_t begin = table.take(8), end = table.take(8);
      if (begin < end_before || end < begin || end > bytes_.size()) {
        return bad(fmt::format("rank {} goes from byte {} to {}, which is not within what is left of the file", rank,
                               begin, end));
      }
      if (auto read = read_rank(rank, bytes_.substr(begin, end - begin)); !read) return tl::unexpected(read.error());
      end_before = end;
    }
    return std::move(ranks_);
  }

 private:
  tl::unexpected<Error> bad(const std::string& what) const {
    return fail(ErrorCode::invalid_input, fmt::format("{}: {}", name_, what),
                "compiled GOAL is read as txt2bin of LogGOPSim writes it; other versions as text");
  }
  tl::unexpected<Error> bad(std::size_t rank, std::size_t operation, const std::string& what) const {
    return bad(fmt::format("rank {}, operation {}: {}", rank, operation, what));
  }

  Result<void> read_rank(std::size_t rank, std::string_view bytes) {
    if (bytes.size() < 2 * index_bytes) return bad(fmt::format("rank {} ends within its counts", rank));
    NumberReader head(bytes, 0);
    const std::uint64_t count = head.take_index(), roots = head.take_index();
    const std::uint64_t operations_at = 2 * index_bytes + index_bytes * roots;
    const std::uint64_t lists_at = operations_at + operation_bytes * count;
    if (lists_at > bytes.size() || (bytes.size() - lists_at) % index_bytes != 0) return wrong_size(rank, count);
    count_ += count;
    if (count_ > max_tasks / 2) return fail(ErrorCode::too_large, name_ + " has too many operations");
    std::vector<Record> records;
    records.reserve(count);
    std::uint64_t listed = 0;
    NumberReader reader(bytes, operations_at);
    for (std::size_t i = 0; i < count; ++i) {
      records.push_back(take_record(reader));
      listed += std::uint64_t{records[i].followers} + records[i].joiners;
    }
    if (listed != (bytes.size() - lists_at) / index_bytes) return wrong_size(rank, count);
    auto& nodes = ranks_[rank];
    for (std::size_t i = 0; i < count; ++i) {
      if (auto added = add(rank, i, records[i], nodes); !added) return added;
    }
    return add_orders(rank, records, bytes.substr(lists_at), nodes);
  }

  tl::unexpected<Error> wrong_size(std::size_t rank, std::uint64_t count) const {
    return bad(fmt::format("rank {} is not as long as its {} operations of {} bytes and their orders", rank, count,
                           operation_bytes));
  }

  Result<void> add(std::size_t rank, std::size_t number, const Record& record, std::vector<ChakraNode>& nodes) const {
    constexpr std::uint8_t send = 1, receive = 2, calc = 3;
    if (record.type < send || record.type > calc) {
      return bad(rank, number, fmt::format("type {} is none of send (1), recv (2) and calc (3)", record.type));
    }
    if (record.type == receive && record.peer == any) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: rank {}, operation {}: it receives from any rank", name_, rank, number),
                  "a message is simulated between two ranks that are known");
    }
    if (record.type != calc && record.tag == any) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: rank {}, operation {}: it receives any tag", name_, rank, number),
                  "messages are matched by their tags");
    }
    GoalOperation operation;
    operation.type = record.type == send      ? ChakraType::send
                     : record.type == receive ? ChakraType::receive
                                              : ChakraType::compute;
    operation.amount = static_cast<std::int64_t>(record.amount);
    operation.peer = record.peer;
    operation.tag = record.type == calc ? 0 : record.tag;
    operation.cpu = record.cpu;
    if (add_goal_operation(nodes, operation)) return {};
    return bad(rank, number,
               fmt::format("{} {} are past what there may be", record.amount, record.type == calc ? "ns" : "bytes"));
  }

  /// Lets those that wait for an operation do so.
  Result<void> add_orders(std::size_t rank, const std::vector<Record>& records, std::string_view lists,
                          std::vector<ChakraNode>& nodes) const {
    const std::size_t room = lists.size() / index_bytes;
    std::vector<std::uint32_t> waiting(records.size(), 0);
    const auto add_list = [&](std::size_t first, std::size_t count, std::size_t waited_for) {
      if (first > room || count > room - first) return false;
      NumberReader list(lists, first * index_bytes);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t follower = list.take_index();
        if (follower >= records.size()) return false;
        nodes[begin_of_operation(follower)].after.push_back(nodes[waited_for].id);
        ++waiting[follower];
      }
      return true;
    };
    for (std::size_t i = 0; i < records.size(); ++i) {
      const Record& of = records[i];
      const bool is_good = (of.followers == 0 || add_list(of.first_follower, of.followers, node_of_operation(i))) &&
                           (of.joiners == 0 || add_list(of.first_joiner, of.joiners, begin_of_operation(i)));
      if (!is_good) return bad(rank, i, "what waits for it is not there");
    }
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (waiting[i] == records[i].waits_for) continue;
      return bad(rank, i, fmt::format("it waits for {} others, and {} say so", records[i].waits_for, waiting[i]));
    }
    return {};
  }

  std::string_view bytes_;  ///< Behind the magic number.
  const std::string& name_;
  std::size_t max_ranks_;
  std::uint64_t count_ = 0;
  std::vector<std::vector<ChakraNode>> ranks_;
};

}  // namespace

bool is_goal_binary(std::string_view bytes) {
  return bytes.size() >= magic_bytes && NumberReader(bytes, 0).take(magic_bytes) == goal_magic;
}

Result<std::vector<std::vector<ChakraNode>>> read_goal_binary(std::string_view bytes, const std::string& name,
                                                              std::size_t max_ranks) {
  if (!is_goal_binary(bytes)) {
    return fail(ErrorCode::invalid_input, name + ": it does not begin as compiled GOAL does, with the number 4223",
                "text is named .goal; txt2bin of LogGOPSim compiles it");
  }
  return GoalBinaryReader(bytes, name, max_ranks).read();
}

}  // namespace espalier::scenario
