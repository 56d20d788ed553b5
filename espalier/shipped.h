#pragma once

// Tested by: tests/unit/espalier/forecast_test.cpp

#include <string>
#include <vector>

namespace espalier {

/// A file that somebody names, and how it is shown to people.
struct ShippedFile {
  std::string path;
  std::string shown;
};

/// The folder of the machines, profiles and scenarios that come with Espalier: $ESPALIER_CONFIGS where it is set, else
/// beside the program (its build folder or installation), else where this library was installed. Empty where there is
/// none.
std::string shipped_folder();

/// The file itself where there is one, or the one of that name in a folder of the shipped configurations: "" for
/// machines, "profiles", "scenarios".
ShippedFile find_shipped(const std::string& argument, const std::string& folder);

/// Where a file of the shipped configurations is.
std::string shipped_file(const std::string& name);

/// Names of the files in a folder of the shipped configurations, sorted.
std::vector<std::string> shipped_names(const std::string& folder);

/// What to write in the place of a name that none of them has; where there are none at all, how they are found.
std::string suggest_shipped(const std::string& written, const std::string& folder);

}  // namespace espalier
