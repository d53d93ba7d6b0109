#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace alpa {

/// A weight under our name and under that of a family of models. '#' stands for the number of a layer. Axes
/// are those of Rearrangement.
struct WeightRow {
  std::string_view ours, our_axes, theirs, their_axes;
  int part = 0;
  bool adds = false;  ///< theirs is added to ours, where another row put something; written as zeros
};

/// How a family of models calls and lays out its weights in the files that people exchange. Files are written
/// so; files that are read may also have what the last four fields say.
struct WeightFamily {
  struct Pair {
    std::string_view first, second;
  };

  std::string_view name, sentence;
  std::vector<WeightRow> rows = {};
  std::string_view prefix = {};               ///< before each name
  std::vector<Pair> other_names = {};         ///< an ending, and the usual one
  std::vector<Pair> copies = {};              ///< a name, and that of the tensor whose values it repeats
  std::vector<std::string_view> unused = {};  ///< what training has no use for
  /// The names and layouts of the model itself, whichever it is; there are no rows.
  bool is_own = false;
};

/// All families: the one place that knows their names.
std::span<const WeightFamily> weight_families();

/// What '#' stands for in a name of this pattern ("" where it has none); nullopt: the name is not of it.
std::optional<std::string> layer_in(std::string_view pattern, std::string_view name);
std::string with_layer(std::string_view pattern, const std::string& layer);

/// A name in a file as the family's rows have it.
std::string usual_name(const WeightFamily&, std::string_view name);

}  // namespace alpa
