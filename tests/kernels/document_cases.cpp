#include "tests/kernels/cases.h"

namespace alpa {

void add_document_cases(std::vector<OpCase>& cases) {
  using I = std::int64_t;
  for (const std::string rows : {"i[3x7]", "i[2x256]", "i[2x700]", "i[1x1]"})
    for (const int ids : {3, 40}) cases.push_back({"document_starts", rows, {{"end", I{2}}}, ids});
  for (const auto& [query, key, sums, starts, length] :
       std::vector<std::tuple<std::string, std::string, std::string, std::string, int>>{
           {"t[2x5x2x4]", "t[2x5x2x4]", "p[2x2x5]", "d[2x5]", 2},
           {"t[3x67x4x6]", "t[3x67x2x6]", "p[3x4x67]", "d[3x67]", 20},
           {"t[1x290x2x8]", "t[1x290x1x8]", "p[1x2x290]", "d[1x290]", 150},
           {"t[1x18x1x100]", "t[1x35x1x100]", "p[1x1x18]", "d[1x18]", 4},
           {"t[1x66x1x128]", "t[1x66x1x128]", "p[1x1x66]", "d[1x66]", 12}})
    for (const I causal : {I{0}, I{1}}) {
      const Attributes mask{{"causal", causal}};
      const std::string keys = " " + key + " " + key + " ";
      cases.push_back({"attention", query + keys + starts, mask, length});
      cases.push_back(
          {"attention_grad", query + " " + query + keys + query + " " + sums + " " + starts, mask, length});
    }
}

}  // namespace alpa
