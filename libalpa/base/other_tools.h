#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace alpa {

/// The name of `names` for what other tools call `word` (a key, an option, a value, a command); "" where none
/// is known. "batch_size" is "batch" among settings of training, "--gpus" is "--devices" among options.
std::string known_by_others_as(std::string_view word, const std::vector<std::string>& names);

/// Where that is set which other tools call `word`, or which is called so here and was given in another
/// place: "batch in [training] of the model file: samples of a step, over all ranks". "" where not known.
std::string where_set(std::string_view word);

/// Whether it is the name here of something that where_set() knows.
bool is_set_elsewhere(std::string_view word);

/// As options and commands are compared: in small letters, '_' for '-', without dashes in front.
std::string plain_word(std::string_view word);

}  // namespace alpa
