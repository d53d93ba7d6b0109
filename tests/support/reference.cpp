#include "tests/support/reference.h"

#include <algorithm>
#include <iterator>

#include "tests/support/source_folder.h"

namespace alpa {

Reference::Reference(const std::string& model)
    : file_(source_folder() / "tests/reference" / (model + ".h5"), "alpa-reference", "1.0") {}

Values Reference::losses() const { return file_.doubles("/losses"); }

Values Reference::gradient_norms() const { return file_.doubles("/gradient_norms"); }

Values Reference::initial(const Graph& graph, const State& state) const {
  const Shape& shape = value_of(graph, state.value).type.shape;
  if (state.is_parameter) return file_.doubles("/weights/" + state.name, shape);
  return Values(static_cast<std::size_t>(element_count(shape)), 0.0);
}

Values Reference::stored(const std::string& path, DType dtype,
                         std::initializer_list<std::size_t> indices) const {
  Values part;
  if (dtype == DType::i32)
    for (const std::int64_t integer : file_.int64s(path)) part.push_back(static_cast<double>(integer));
  else
    part = file_.doubles(path);
  const Shape extent = file_.extent(path);
  auto dimension = extent.begin();
  for (const std::size_t index : indices) {
    const std::ptrdiff_t length = std::ssize(part) / *dimension++;
    const auto first = part.begin() + static_cast<std::ptrdiff_t>(index) * length;
    part = Values(first, first + length);
  }
  return part;
}

double Reference::targets(std::size_t step, std::int64_t batch) const {
  const char* const path = file_.has("/structure") ? "/labels" : "/targets";
  if (!file_.has(path)) return static_cast<double>(batch);
  const Values targets = stored(path, DType::i32, {step});
  return static_cast<double>(std::ranges::count_if(targets, [](double target) { return target >= 0; }));
}

}  // namespace alpa
