#include "python/torch/store_meeting.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace espalier::python {
namespace {

/// A number that nobody had before.
std::string fresh_number() {
  std::random_device source;
  std::ostringstream text;
  text << std::hex << source() << '-' << source() << '-' << source();
  return text.str();
}

}  // namespace

std::string Meeting::await(const std::string& key, const EngineJoin& terms) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(terms.timeout_ms);
  std::chrono::microseconds pause(200);
  while (!store->check({key})) {
    if (is_over != nullptr && *is_over) throw std::runtime_error("the process group was destroyed");
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("rank " + std::to_string(terms.rank) + " waited " + std::to_string(terms.timeout_ms) +
                               " ms for the others to join (" + name + "): not all of them came");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20'000));
  }
  const std::vector<std::uint8_t> bytes = store->get(key);
  return {bytes.begin(), bytes.end()};
}

void Meeting::leave(const std::string& key, const std::string& text) const {
  store->set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
}

Meeting::Found Meeting::invite(const EngineJoin& terms) const {
  const std::string own = engine.machine();
  bool is_one_machine = true;
  std::vector<std::string> numbers;
  for (std::uint32_t other = 1; other < terms.world; ++other) {
    const std::string asked = await(name + "/rank/" + std::to_string(other), terms);
    const std::size_t end = asked.find(' ');
    numbers.push_back(asked.substr(0, end));
    is_one_machine = is_one_machine && asked.substr(end + 1) == own;
  }
  EnginePlace* place = nullptr;
  expect(engine.listen(is_one_machine, &place));
  Found found{fresh_number(), place->text(), Owned<EnginePlace>(place)};
  for (const std::string& number : numbers) leave(name + "/place/" + number, found.session + " " + found.place);
  return found;
}

Meeting::Found Meeting::ask(const EngineJoin& terms) const {
  const std::string asked = name + "/rank/" + std::to_string(terms.rank);
  const std::string number = fresh_number();
  leave(asked, number + " " + engine.machine());
  const std::string answered = name + "/place/" + number;
  const std::string answer = await(answered, terms);
  for (const std::string& key : {asked, answered}) store->deleteKey(key);
  const std::size_t end = answer.find(' ');
  return {answer.substr(0, end), answer.substr(end + 1), nullptr};
}

Meeting::Joined Meeting::join(EngineJoin terms, Owned<EngineGpu> gpu) const {
  Found found = terms.rank == 0 ? invite(terms) : ask(terms);
  terms.place = found.place.c_str();
  terms.own_place = found.own.release();
  terms.gpu = gpu.release();
  terms.warn = [](const char* text) { TORCH_WARN(text); };
  EngineJob* job = nullptr;
  expect(engine.join(terms, &job));
  return {Owned<EngineJob>(job), found.session};
}

}  // namespace espalier::python
