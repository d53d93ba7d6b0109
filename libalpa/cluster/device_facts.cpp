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

// About 90 % (V100, A100) or 75 % (H100, H200) of the data sheet's peak in f32, 70 to 75 % of that in 16
// bits, 85 % of the memory's rate; of the memory, what the driver's context and NCCL leave.
constexpr DeviceFigures kDeviceFigures[] = {
    {"V100", "NVIDIA V100 SXM2 16 GB", 12.9, 14, 0, 88, 765, 5, 6},
    {"V100-32GB", "NVIDIA V100 SXM2 32 GB", 28.8, 14, 0, 88, 765, 5, 6},
    {"A100", "NVIDIA A100 SXM4 40 GB", 36, 17.5, 235, 235, 1320, 4, 12},
    {"A100-80GB", "NVIDIA A100 SXM4 80 GB", 72, 17.5, 235, 235, 1730, 4, 12},
    {"H100", "NVIDIA H100 SXM 80 GB", 72, 50, 690, 690, 2850, 4, 35},
    {"H200", "NVIDIA H200 SXM 141 GB", 136, 50, 690, 690, 4100, 4, 35}};

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

const DeviceFigures* device_figures(const std::string& word) {
  for (const DeviceFigures& figures : kDeviceFigures)
    if (word == figures.word) return &figures;
  return nullptr;
}

std::vector<std::string> device_words() {
  std::vector<std::string> words;
  for (const DeviceFigures& figures : kDeviceFigures) words.emplace_back(figures.word);
  return words;
}

}  // namespace alpa
