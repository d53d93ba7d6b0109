#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "libalpa/base/tensor_type.h"

namespace alpa {

/// Where the elements of a tensor of ours lie in one of a file. Axes are named:
///
///     ours "d h k"   theirs "(h k) d"           transposed, heads side by side
///     ours "h k"     theirs "(3 h k)" part 1    the second of three that are stored as one
///     ours "s d"     theirs "2 d"     part 0    row 0, the same for all s
///
/// Axes in parentheses are one dimension of theirs; a number is an axis of that extent, at whose place `part`
/// ours lies.
class Rearrangement {
 public:
  Rearrangement(std::string_view ours, std::string_view theirs, int part, const Shape& our_shape);

  const Shape& their_shape() const { return their_shape_; }
  bool is_same() const;  ///< elements lie in the same order, and there are no others

  /// Reads `count` elements of theirs from element `first` on.
  using Read = std::function<void(std::int64_t first, std::int64_t count, void* into)>;

  /// Fills (`adds`: adds to) all of ours from theirs, both of floats, of which it asks for some MiB at a
  /// time.
  void gather(DType from, const Read& read, DType to, bool adds, void* ours) const;

  /// Puts ours into theirs, both of type `type` and in memory.
  void scatter(DType type, const void* ours, void* theirs) const;

 private:
  struct Axis {
    std::int64_t extent, ours, theirs;  ///< and how many elements its neighbours are apart
  };

  template <class Element>
  void walk(std::size_t axis, std::int64_t ours, std::int64_t theirs, std::int64_t outermost,
            const Element& element) const;

  template <class From, class To>
  void gather_as(const Read& read, bool adds, To* ours) const;

  Shape their_shape_;
  std::vector<Axis> axes_;  ///< in the order of theirs
  std::int64_t first_ = 0;  ///< element of theirs
};

}  // namespace alpa
