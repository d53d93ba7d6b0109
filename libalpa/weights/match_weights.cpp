#include "libalpa/weights/match_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "libalpa/base/error.h"

namespace alpa {
namespace {

using Stored = std::map<std::string, StoredTensor>;

constexpr int most_shown = 12;

bool is_unused(const WeightFamily& family, const std::string& name) {
  return std::any_of(family.unused.begin(), family.unused.end(),
                     [&](std::string_view pattern) { return layer_in(pattern, name).has_value(); });
}

const WeightFamily::Pair* copy_of(const WeightFamily& family, const std::string& name) {
  const auto found = std::find_if(family.copies.begin(), family.copies.end(),
                                  [&](const WeightFamily::Pair& copy) { return copy.first == name; });
  return found == family.copies.end() ? nullptr : &*found;
}

int names_known(const WeightFamily& family, const std::map<std::string, Shape>& ours, const Stored& theirs) {
  int known = 0;
  if (family.is_own)
    for (const auto& [name, tensor] : theirs) known += ours.contains(name);
  for (const auto& [name, tensor] : theirs)
    known += std::any_of(family.rows.begin(), family.rows.end(),
                         [&, theirs_name = usual_name(family, name)](const WeightRow& row) {
                           return layer_in(row.theirs, theirs_name).has_value();
                         });
  return known;
}

const WeightFamily& family_of(const std::map<std::string, Shape>& ours, const Stored& theirs,
                              const std::string& file) {
  const WeightFamily* best = nullptr;
  int most = 0;
  std::string names;
  for (const WeightFamily& family : weight_families()) {
    const int known = names_known(family, ours, theirs);
    if (known > most) best = &family;
    most = std::max(most, known);
    names += fmt::format("{}{} ('{}', ...)", names.empty() ? "" : ", ", family.sentence,
                         family.is_own ? (ours.empty() ? std::string_view("none") : ours.begin()->first)
                                       : family.rows.front().theirs);
  }
  if (!best)
    throw Error(ErrorKind::input,
                fmt::format("'{}' has {} tensors, and none of them is named as in a family that is known",
                            file, theirs.size()),
                fmt::format("families and their names: {}", names));
  return *best;
}

/// "; the nearest name is 'x'", or "".
std::string nearest(const std::string& name, const std::vector<std::string>& names, const char* where) {
  const std::string near = nearest_name(name, names);
  return near.empty() ? "" : fmt::format("; nearest {}: '{}'", where, near);
}

bool is_float(const std::string& dtype) { return dtype == "F32" || dtype == "BF16" || dtype == "F16"; }

std::size_t axis_count(std::string_view axes) {
  return static_cast<std::size_t>(std::count(axes.begin(), axes.end(), ' ')) + 1;
}

/// "a b c"
std::string letters(std::size_t count) {
  std::string axes;
  for (std::size_t i = 0; i < count; ++i) (axes += i == 0 ? "" : " ") += static_cast<char>('a' + i);
  return axes;
}

class Matching {
 public:
  Matching(const std::map<std::string, Shape>& ours, const Stored& theirs, const std::string& file)
      : theirs_(theirs), file_(file) {
    matched_.family = &family_of(ours, theirs, file);
    in_step(fmt::format("naming the model's weights as in '{}'", file),
            [&] { matched_.places = place_weights(*matched_.family, ours); });
  }

  MatchedWeights run() {
    std::set<std::string> wanted;
    for (const WeightPlace& place : matched_.places) wanted.insert(place.theirs);
    std::vector<std::string> superfluous, missing;
    for (const auto& [name, tensor] : theirs_) sort_in(name, tensor, wanted, superfluous);
    for (const std::string& name : wanted)
      if (!matched_.theirs.contains(name)) missing.push_back(name);
    for (const std::string& name : missing)
      fault(
          [&] { return fmt::format("'{}' is missing{}", name, nearest(name, superfluous, "in the file")); });
    const std::vector<std::string> names(wanted.begin(), wanted.end());
    for (const std::string& name : superfluous)
      fault([&] {
        return fmt::format("'{}' is not of this model{}", name,
                           nearest(usual_name(*matched_.family, name), names, "of the model"));
      });
    compare_types();
    if (faults_ > 0)
      throw Error(
          ErrorKind::input,
          fmt::format("the tensors of '{}' are not those of the model, as {} names them:{}{}", file_,
                      matched_.family->sentence, lines_,
                      faults_ > most_shown ? fmt::format("\n  and {} more", faults_ - most_shown) : ""),
          "give [dimensions], `sequence` and `tie` of the model file the values that the file was made "
          "with (config.json beside it); of a model in several files give the index");
    return std::move(matched_);
  }

 private:
  void sort_in(const std::string& name, const StoredTensor& tensor, const std::set<std::string>& wanted,
               std::vector<std::string>& superfluous) {
    const std::string usual = usual_name(*matched_.family, name);
    const WeightFamily::Pair* const copy = copy_of(*matched_.family, usual);
    if (is_unused(*matched_.family, usual)) {
      matched_.unused.push_back(name);
    } else if (!wanted.contains(usual) && !(copy && wanted.contains(std::string(copy->second)))) {
      superfluous.push_back(name);
    } else if (!matched_.theirs.emplace(usual, &tensor).second) {
      fault([&] {
        return fmt::format("'{}' appears twice, also as '{}'", name, matched_.theirs[usual]->name);
      });
    } else if (!wanted.contains(usual)) {
      matched_.copies.push_back(usual);
    }
  }

  void compare_types() {
    std::set<std::string> seen;
    for (const WeightPlace& place : matched_.places) {
      const auto found = matched_.theirs.find(place.theirs);
      if (found == matched_.theirs.end() || !seen.insert(place.theirs).second) continue;
      const StoredTensor& tensor = *found->second;
      if (!is_float(tensor.dtype))
        fault(
            [&] { return fmt::format("'{}' is {}, expected F32, BF16 or F16", tensor.name, tensor.dtype); });
      if (tensor.shape != place.where.their_shape())
        fault([&] {
          return fmt::format("'{}' is {}, expected {} for the model's '{}'", tensor.name,
                             shape_text(tensor.shape), shape_text(place.where.their_shape()), place.ours);
        });
    }
  }

  template <class Line>
  void fault(const Line& line) {
    if (++faults_ <= most_shown) lines_ += "\n  " + line();
  }

  const Stored& theirs_;
  const std::string& file_;
  MatchedWeights matched_;
  int faults_ = 0;
  std::string lines_;
};

/// What a family has, by its own names, and none of these weights is. What repeats another tensor need not be
/// there.
std::vector<std::string> missing_of(const WeightFamily& family, const std::vector<WeightPlace>& places) {
  std::set<std::pair<std::string, std::string>> placed;
  std::set<std::string> layers;
  for (const WeightPlace& place : places) {
    placed.emplace(place.ours, place.theirs);
    for (const WeightRow& row : family.rows)
      if (const auto layer = layer_in(row.ours, place.ours); layer && !layer->empty()) layers.insert(*layer);
  }
  if (layers.empty()) layers.insert("0");
  std::set<std::string> missing;
  for (const WeightRow& row : family.rows)
    for (const std::string& layer : layers) {
      const std::string theirs = with_layer(row.theirs, layer);
      if (!copy_of(family, theirs) && !placed.contains({with_layer(row.ours, layer), theirs}))
        missing.insert(theirs);
    }
  return {missing.begin(), missing.end()};
}

}  // namespace

std::vector<WeightPlace> place_weights(const WeightFamily& family, const std::map<std::string, Shape>& ours) {
  std::vector<WeightPlace> places;
  std::string unnamed;
  int count = 0;
  for (const auto& [name, shape] : ours) {
    const std::size_t before = places.size();
    if (family.is_own) {
      const std::string axes = letters(shape.size());
      places.push_back({name, name, Rearrangement(axes, axes, 0, shape)});
    }
    for (const WeightRow& row : family.rows)
      if (const auto layer = layer_in(row.ours, name); layer && axis_count(row.our_axes) == shape.size())
        places.push_back({name, with_layer(row.theirs, *layer),
                          Rearrangement(row.our_axes, row.their_axes, row.part, shape), row.adds});
    if (places.size() == before && ++count <= most_shown) unnamed += fmt::format("\n  '{}'", name);
  }
  if (count > 0)
    throw Error(
        ErrorKind::input,
        fmt::format("the names of {} have none for {} of the model's {} weights:{}{}", family.sentence, count,
                    ours.size(), unnamed, count > most_shown ? "\n  ..." : ""),
        "use a model of that family, or another family's names");
  return places;
}

std::vector<WeightPlace> place_all_weights(const WeightFamily& family,
                                           const std::map<std::string, Shape>& ours) {
  std::vector<WeightPlace> places = place_weights(family, ours);
  const std::vector<std::string> missing = missing_of(family, places);
  if (missing.empty()) return places;
  std::string lines;
  for (std::size_t i = 0; i < std::min<std::size_t>(missing.size(), most_shown); ++i)
    lines += fmt::format("\n  '{}'", missing[i]);
  throw Error(ErrorKind::input,
              fmt::format("the model lacks {} of the weights of {}:{}{}", missing.size(), family.sentence,
                          lines, std::ssize(missing) > most_shown ? "\n  ..." : ""),
              "another family's names, or a model of that family");
}

MatchedWeights match_weights(const std::map<std::string, Shape>& ours, const Stored& theirs,
                             const std::string& file) {
  return Matching(ours, theirs, file).run();
}

}  // namespace alpa
