#pragma once
#include <fmt/core.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include "libalpa/base/error.h"

namespace alpa {

/// Throws Error(run_time) unless a call of oneDNN's C interface did what it should.
inline void check(dnnl_status_t status, const char* what) {
  if (status != dnnl_success)
    throw Error(ErrorKind::run_time, fmt::format("oneDNN cannot {}: {}", what, dnnl_status2str(status)));
}

}  // namespace alpa
