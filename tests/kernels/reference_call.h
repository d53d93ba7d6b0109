#pragma once
#include <cmath>
#include <span>
#include <vector>

#include "libalpa/graph/op.h"
#include "libalpa/kernels/kernel.h"
#include "tests/support/tensor_values.h"

namespace alpa {

/// What the reference of one operator is given.
struct ReferenceCall {
  const OpDef& op;
  std::span<const TensorType> types;
  const Attributes& attributes;
  std::span<const Values> in;
  const RunPoint& point;

  std::size_t extent(std::size_t operand, std::size_t dimension) const {
    return static_cast<std::size_t>(types[operand].shape[dimension]);
  }
  std::size_t width(std::size_t operand) const {
    return static_cast<std::size_t>(types[operand].shape.back());
  }
};
inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

using ReferenceResults = std::vector<Values>;

/// What updates multiply gradients by; the fifth of the scalars is 1 / loss scale.
double gradient_factor_reference(const ReferenceCall&, const Values& scalars, double square_norm);

/// `first`: the operand after the weights, and the working weights where there are some.
ReferenceResults adafactor_reference(const ReferenceCall&, std::size_t first);
ReferenceResults adafactor_factors_reference(const ReferenceCall&);
ReferenceResults adafactor_moment_reference(const ReferenceCall&);
ReferenceResults adafactor_squares_reference(const ReferenceCall&);
ReferenceResults adafactor_sums_reference(const ReferenceCall&);
ReferenceResults attention_reference(const ReferenceCall&);
ReferenceResults attention_grad_reference(const ReferenceCall&);
ReferenceResults average_pool_reference(const ReferenceCall&);
ReferenceResults average_pool_grad_reference(const ReferenceCall&);
ReferenceResults batch_norm_reference(const ReferenceCall&);
ReferenceResults batch_norm_add_relu_reference(const ReferenceCall&);
ReferenceResults batch_norm_grad_reference(const ReferenceCall&);
ReferenceResults batch_norm_relu_reference(const ReferenceCall&);
ReferenceResults batch_norm_relu_grad_reference(const ReferenceCall&);
ReferenceResults batch_norm_relu_sums_reference(const ReferenceCall&);
ReferenceResults batch_norm_sums_reference(const ReferenceCall&);
ReferenceResults cached_attention_reference(const ReferenceCall&);
ReferenceResults channel_mean_reference(const ReferenceCall&);
ReferenceResults channel_variance_reference(const ReferenceCall&);
ReferenceResults concat_reference(const ReferenceCall&);
ReferenceResults conv2d_reference(const ReferenceCall&);
ReferenceResults conv2d_grad_input_reference(const ReferenceCall&);
ReferenceResults conv2d_grad_weight_reference(const ReferenceCall&);
ReferenceResults group_norm_reference(const ReferenceCall&);
ReferenceResults group_norm_grad_reference(const ReferenceCall&);
ReferenceResults gru_reference(const ReferenceCall&);
ReferenceResults gru_grad_reference(const ReferenceCall&);
ReferenceResults layer_norm_reference(const ReferenceCall&);
ReferenceResults layer_norm_grad_reference(const ReferenceCall&);
ReferenceResults low_rank_product_reference(const ReferenceCall&);
ReferenceResults orthonormal_columns_reference(const ReferenceCall&);
ReferenceResults renewed_columns_reference(const ReferenceCall&);
ReferenceResults lstm_reference(const ReferenceCall&);
ReferenceResults lstm_grad_reference(const ReferenceCall&);
ReferenceResults max_pool_reference(const ReferenceCall&);
ReferenceResults max_pool_grad_reference(const ReferenceCall&);
ReferenceResults pool_steps_reference(const ReferenceCall&);
ReferenceResults pool_steps_grad_reference(const ReferenceCall&);
ReferenceResults rms_norm_reference(const ReferenceCall&);
ReferenceResults rms_norm_grad_reference(const ReferenceCall&);
ReferenceResults rotary_reference(const ReferenceCall&);  ///< of rotary_at too
ReferenceResults running_statistic_reference(const ReferenceCall&);
ReferenceResults running_update_reference(const ReferenceCall&);
ReferenceResults rounds_reference(const ReferenceCall&);  ///< of rounds_grad too
ReferenceResults slice_reference(const ReferenceCall&);
ReferenceResults slice_grad_reference(const ReferenceCall&);
ReferenceResults step_weights_reference(const ReferenceCall&);
ReferenceResults upsample_reference(const ReferenceCall&);
ReferenceResults top_k_slots_reference(const ReferenceCall&);
ReferenceResults top_k_weights_reference(const ReferenceCall&);
ReferenceResults top_k_weights_grad_reference(const ReferenceCall&);
ReferenceResults balance_loss_reference(const ReferenceCall&);
ReferenceResults balance_loss_grad_reference(const ReferenceCall&);
ReferenceResults dispatch_reference(const ReferenceCall&);
ReferenceResults document_starts_reference(const ReferenceCall&);
ReferenceResults dropped_reference(const ReferenceCall&);
ReferenceResults error_feedback_reference(const ReferenceCall&);
ReferenceResults combine_reference(const ReferenceCall&);
ReferenceResults combine_grad_weights_reference(const ReferenceCall&);

}  // namespace alpa
