#pragma once

// Tested by: tests/unit/engine/doctor/doctor_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace espalier::engine::doctor {

/// Small files of /proc and /sys, at most a few megabytes; what cannot be read is empty.
std::string read_pseudo_file(const std::string& path);
/// Its first line.
std::string first_line_of(const std::string& path);
/// The number that its first line begins with.
std::optional<std::int64_t> number_in(const std::string& path);
/// The entries of a folder whose names begin so, sorted; none when there is no such folder.
std::vector<std::string> entries_of(const std::string& folder, const std::string& prefix = {});
/// What stands after "KEY:" (and blanks) in the first line that begins with KEY.
std::string value_after(const std::string& text, const std::string& key);

}  // namespace espalier::engine::doctor
