// Stands in for libFuzzer where it is not built in: gives every file of a corpus to the fuzz target, then seeded
// mutations of them, always the same.
//   fuzz_NAME CORPUS_FOLDER [MUTATIONS]

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::uint64_t default_mutations = 5000;
constexpr std::uint64_t seed = 1;

std::vector<std::string> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return corpus;
}

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

/// One small change: a byte, a cut, a piece twice, or a piece of another input.
void mutate(std::string& input, const std::vector<std::string>& corpus, espalier::Random& random) {
  constexpr std::uint64_t longest_piece = 32;
  const std::size_t at = random.below(input.size() + 1);
  const std::size_t length = random.below(longest_piece);
  switch (random.below(5)) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(random.below(256));
      break;
    case 1: input.insert(at, 1, "\n :-,[]{}$*&#\"'0-9"[random.below(18)]); break;
    case 2: input.erase(at, length); break;
    case 3: input.insert(at, input.substr(random.below(input.size() + 1), length)); break;
    default: {
      const std::string& other = corpus[random.below(corpus.size())];
      input.insert(at, other.substr(random.below(other.size() + 1), length));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: fuzz_NAME CORPUS_FOLDER [MUTATIONS]\n", stderr);
    return 2;
  }
  const std::vector<std::string> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fputs("the corpus is empty\n", stderr);
    return 1;
  }
  const std::uint64_t mutations = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : default_mutations;
  for (const std::string& input : corpus) run(input);
  espalier::Random random(seed);
  for (std::uint64_t i = 0; i < mutations; ++i) {
    std::string input = corpus[random.below(corpus.size())];
    const std::uint64_t changes = 1 + random.below(8);
    for (std::uint64_t k = 0; k < changes; ++k) mutate(input, corpus, random);
    run(input);
  }
  std::printf("%zu inputs and %llu mutations: nothing broke\n", corpus.size(),
              static_cast<unsigned long long>(mutations));
  return 0;
}
