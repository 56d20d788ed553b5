#pragma once

// Tested by: tests/unit/schedule/traffic/traffic_matrix_test.cpp

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/traffic/traffic_matrix.h"

namespace espalier {

/// A number of a matrix that is not negative; what is wrong with it otherwise.
struct TrafficNumber {
  double value = 0;
  std::string wrong;  ///< Empty where it is right.
};
TrafficNumber read_traffic_number(std::string_view text);
/// What is wrong with a number, or nothing: it is finite, not negative and at most 2^52.
std::string why_bad_traffic(double value);

/// "NAME:LINE:COLUMN: message".
tl::unexpected<Error> fail_traffic(std::string_view name, std::string_view text, std::size_t offset,
                                   const std::string& message, std::string help);

/// A square matrix of numbers, whole ones as bytes. `name` stands in errors.
Result<TrafficMatrix> finish_traffic(std::size_t ranks, const std::vector<double>& values, std::string_view name);

Result<TrafficMatrix> parse_traffic_csv(std::string_view text, std::string_view name);
Result<TrafficMatrix> parse_traffic_json(std::string_view text, std::string_view name);
Result<TrafficMatrix> parse_traffic_npy(std::string_view bytes, std::string_view name);

/// The fields of a line of numbers and where in the text each begins; parted by a comma, semicolon or tab, or by
/// blanks where there is none of these. What # begins is left out.
struct TrafficField {
  std::string_view text;
  std::size_t offset = 0;
};
/// Takes the next line off a text; nothing at its end.
std::optional<std::vector<TrafficField>> next_traffic_line(std::string_view text, std::size_t& offset);

}  // namespace espalier
