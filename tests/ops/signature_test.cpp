#include <gmock/gmock.h>

#include "libalpa/graph/op.h"
#include "libalpa/ops/catalog.h"

namespace alpa {
namespace {

std::string signature(const char* op, std::vector<TensorType> operands, const Attributes& attributes) {
  return signature_of(op_catalog().find(op), {operands, attributes});
}

const TensorType rows{DType::f32, {2, 8}};

TEST(Signature, NamesOperatorSettingsAndLocalTypes) {
  EXPECT_EQ(signature("relu", {rows}, {}), "relu f32[2x8]");
  EXPECT_EQ(signature("einsum", {rows, {DType::bf16, {8, 4}}}, {{"equation", "m k, k n -> m n"}}),
            "einsum equation='m k, k n -> m n' f32[2x8] bf16[8x4]");
}

TEST(Signature, LeavesOutWhatDoesNotChangeTheTime) {
  EXPECT_EQ(signature("scale", {rows}, {{"factor", 0.5}}), "scale f32[2x8]");
  EXPECT_EQ(signature("dropout", {rows}, {{"rate", 0.1}, {"stream", std::int64_t{3}}}), "dropout f32[2x8]");
  EXPECT_EQ(signature("sum_squares", {rows}, {{"weight", 0.25}}), "sum_squares f32[2x8]");
  EXPECT_EQ(signature("sgd", {rows, rows, rows}, {{"clip", 1.0}, {"momentum", 0.9}, {"weight_decay", 0.1}}),
            "sgd f32[2x8] f32[2x8] f32[2x8]");
}

TEST(Signature, KeepsWhatChangesTheWork) {
  EXPECT_EQ(signature("attention", {rows}, {{"causal", std::int64_t{1}}, {"scale", 0.1}}),
            "attention causal=1 f32[2x8]");
  EXPECT_EQ(signature("reduce_leading", {rows}, {{"keep", std::int64_t{1}}}),
            "reduce_leading keep=1 f32[2x8]");
}

}  // namespace
}  // namespace alpa
