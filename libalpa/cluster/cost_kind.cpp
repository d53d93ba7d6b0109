#include "libalpa/cluster/cost_kind.h"

#include <algorithm>

namespace alpa {

std::string cost_kind_of_operator(const std::string& signature) {
  std::size_t first = std::string::npos;
  std::string type;
  for (const DType each : {DType::f32, DType::bf16, DType::f16}) {
    const std::string name(dtype_name(each));
    const std::size_t at = signature.find(" " + name + "[");
    if (at >= first) continue;
    first = at;
    type = " " + name;
  }
  return signature.substr(0, signature.find(' ')) + type;
}

std::string cost_kind_of_collective(CollectiveKind kind, bool between_nodes) {
  return std::string(kind == CollectiveKind::send ? "transfers" : collective_name(kind)) +
         (between_nodes ? " between nodes" : " within nodes");
}

}  // namespace alpa
