#pragma once
#include <functional>
#include <memory>

#include "libalpa/base/device_kind.h"
#include "libalpa/graph/vertex_rows.h"
#include "libalpa/kernels/kernel.h"

namespace alpa {

/// So many numbers of rows of a group kernels are prepared for, at most.
inline constexpr std::int64_t kRowCounts = 32;

/// Prepares a call on rows of vertices for those that are there, RunPoint::group_rows: `make` prepares the
/// operator for several numbers of rows, without VertexRows among its attributes, and each group takes the
/// least that has all of its. Rows after these become zeros in results, so that rows that no vertex has are
/// finite, whoever looks at them.
std::unique_ptr<Kernel> make_row_group_kernel(
    const OpDef&, const KernelShape&, const VertexRows&, DeviceKind,
    const std::function<std::unique_ptr<Kernel>(const KernelShape&)>& make);

}  // namespace alpa
