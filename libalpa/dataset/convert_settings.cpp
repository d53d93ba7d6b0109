#include "libalpa/dataset/convert_settings.h"

namespace alpa {

std::filesystem::path hold_out_file(const ConvertSettings& settings) {
  if (!settings.hold_out_file.empty()) return settings.hold_out_file;
  std::filesystem::path file = settings.out;
  return file.replace_filename(settings.out.stem().string() + "-held-out" +
                               settings.out.extension().string());
}

}  // namespace alpa
