#include "libalpa/cluster/device_facts.h"

#include "libalpa/cluster/device_words.h"

namespace alpa {
namespace {

struct DataSheet {
  const char* model;
  double f32_tflops, low_precision_tflops;  ///< low precision: bf16 and f16
};

constexpr DataSheet kDataSheets[] = {
    {"V100", 15.7, 125}, {"A100", 19.5, 312}, {"H100", 67, 989}, {"H200", 67, 989}};
constexpr DataSheet kPcieDataSheets[] = {{"V100", 14, 112}, {"A100", 19.5, 312}, {"H100", 51, 756}};

std::optional<DataSheet> data_sheet(const std::string& device) {
  const std::string model = device_model(device);
  const auto find = [&](const auto& sheets) -> std::optional<DataSheet> {
    for (const DataSheet& sheet : sheets)
      if (model == sheet.model) return sheet;
    return std::nullopt;
  };
  if (device.find("NVL") != std::string::npos) return std::nullopt;
  return device.find("PCI") == std::string::npos ? find(kDataSheets) : find(kPcieDataSheets);
}

}  // namespace

std::int64_t reserved_bytes(DeviceKind kind) { return kind == DeviceKind::cuda ? std::int64_t{2} << 30 : 0; }

std::optional<double> data_sheet_flops_per_s(const std::string& device, DType type) {
  if (kind_of_words(device) == DeviceKind::cpu) return std::nullopt;
  const std::optional<DataSheet> sheet = data_sheet(device);
  if (!sheet) return std::nullopt;
  return 1e12 * (dtype_bytes(type) == 2 ? sheet->low_precision_tflops : sheet->f32_tflops);
}

}  // namespace alpa
