#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "apps/app.h"
#include "apps/rank_device.h"
#include "libalpa/sampler/sample_text.h"

namespace alpa {

/// What `alpa-train sample` takes.
struct SampleSettings {
  std::filesystem::path plan, json, prompt_file;
  std::vector<std::string> prompts;
  std::string tokenizer;  ///< see open_tokenizer(); "": bytes, of a model that has as many words
  SamplingSettings sampling;
  DeviceSettings device;
  double file_timeout_s = 1800;
};
void describe(SampleSettings&, OptionsVisitor&);

void add_sample(App&, SampleSettings&);

}  // namespace alpa
