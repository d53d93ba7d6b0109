#pragma once
#include <functional>
#include <vector>

namespace alpa::testing_models {

/// A stage of a pipeline: layers, and how many devices it has.
struct PipelinePart {
  int first_layer = 0, end_layer = 0, devices = 1;
};

/// Calls `visit` with every way to cut the layers into stages of these sizes that take all devices together.
inline void for_each_partition(int layers, int devices, const std::vector<int>& sizes,
                               const std::function<void(const std::vector<PipelinePart>&)>& visit) {
  std::vector<PipelinePart> stages;
  const std::function<void(int, int)> extend = [&](int first, int left) {
    if (first == layers && left == 0) visit(stages);
    for (const int size : sizes)
      for (int end = first + 1; end <= layers && size <= left; ++end) {
        stages.push_back({first, end, size});
        extend(end, left - size);
        stages.pop_back();
      }
  };
  extend(0, devices);
}

}  // namespace alpa::testing_models
