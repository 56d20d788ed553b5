#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/job_name.h"

namespace espalier::lab {

/// A shell script that ends every process in the namespaces of a lab and removes them; $1 is the lab's prefix.
std::string tear_down_script();

/// Removes all namespaces of a lab, and ends what runs in them.
/// Errors: unavailable, with the tool's own words, when one could not be removed.
Result<void> tear_down(const JobName& job);

/// Removes the namespaces of labs whose process is gone, and gives their prefixes.
Result<std::vector<std::string>> clean_leftovers();

}  // namespace espalier::lab
