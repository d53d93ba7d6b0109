#pragma once
#include <functional>

namespace alpa {

/// In how many parts, of 1 to `most`, a step is the shortest, as Parallax searches it (EuroSys'19, 3.2):
/// from `first` parts on twice as many while that helps, else half as many; then a curve b / P + a (P - 1) +
/// c through what was tried, once that is three numbers or more; its least is tried too. `step_s` is asked
/// once for each number.
int best_parts(int first, int most, const std::function<double(int parts)>& step_s);

}  // namespace alpa
