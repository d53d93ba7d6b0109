#include "libalpa/kernels/cpu/convolution_primitive_cpu.h"

#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <vector>

#include "libalpa/kernels/cpu/dnnl_status.h"
#include "libalpa/kernels/cpu/host_loops.h"
#include "libalpa/ops/window.h"

namespace alpa {
namespace {

using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;
using Description = dnnl::memory::desc;

Type type_of(DType dtype) { return dtype == DType::f32 ? Type::f32 : Type::bf16; }

/// oneDNN names dimensions [n c h w], in whatever order they lie.
Description image(const Shape& shape, Type type) {
  return {{shape[0], shape[3], shape[1], shape[2]}, type, dnnl::memory::format_tag::nhwc};
}

/// Filters as [g f c p q]; where they are `packed`, in an order that oneDNN chooses.
Description filters(const ConvolutionExtents& e, Type type, bool packed) {
  const std::int64_t p = e.weight[0], q = e.weight[1], c = e.weight[2], all = e.weight[3];
  const std::int64_t groups = e.x[3] / c, f = all / groups;
  Dims extents{f, c, p, q}, strides{1, all, q * c * all, c * all};
  if (groups > 1) {
    extents.insert(extents.begin(), groups);
    strides.insert(strides.begin(), f);
  }
  return packed ? Description(extents, type, dnnl::memory::format_tag::any)
                : Description(extents, type, strides);
}

/// What does not depend on the direction of a convolution.
struct Parts {
  Dims strides, dilations, padding;
  Description x, weight, weight_gradient, y;
  dnnl::primitive_attr attributes;

  Parts(const ConvolutionExtents& e, Type type)
      : x(image(e.x, type)),
        weight(filters(e, type, true)),
        weight_gradient(filters(e, Type::f32, true)),
        y(image(e.y, type)) {
    for (const Window& window : windows_of(e.attributes, e.weight[0], e.weight[1])) {
      strides.push_back(window.stride);
      dilations.push_back(window.dilation - 1);
      padding.push_back(window.padding);
    }
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  dnnl::convolution_forward::primitive_desc forward(const dnnl::engine& engine) const {
    return {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, x, weight, y, strides,
             dilations, padding, padding},
            attributes,
            engine};
  }
  dnnl::convolution_backward_data::primitive_desc grad_input(const dnnl::engine& engine) const {
    return {{dnnl::algorithm::convolution_direct, x, weight, y, strides, dilations, padding, padding},
            attributes,
            engine,
            forward(engine)};
  }
  dnnl::convolution_backward_weights::primitive_desc grad_weight(const dnnl::engine& engine) const {
    return {
        {dnnl::algorithm::convolution_direct, x, weight_gradient, y, strides, dilations, padding, padding},
        attributes,
        engine,
        forward(engine)};
  }
};

class DnnlConvolution final : public ConvolutionPrimitive {
 public:
  /// Throws dnnl::error where oneDNN has no such primitive.
  DnnlConvolution(ConvolutionKind kind, const ConvolutionExtents& e, DType dtype,
                  const ConvolutionScratch& room)
      : kind_(kind),
        dtype_(dtype),
        room_(room),
        engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        threads_(host_threads()),
        x_(image(e.x, type_of(dtype)), engine_, nullptr),
        y_(image(e.y, type_of(dtype)), engine_, nullptr),
        weight_(filters(e, type_of(weight_type()), false), engine_, nullptr) {
    const Parts parts(e, type_of(dtype));
    if (kind == ConvolutionKind::forward) {
      const auto description = parts.forward(engine_);
      prepare(dnnl::convolution_forward(description), description, description.weights_desc());
    } else if (kind == ConvolutionKind::grad_input) {
      const auto description = parts.grad_input(engine_);
      prepare(dnnl::convolution_backward_data(description), description, description.weights_desc());
    } else {
      const auto description = parts.grad_weight(engine_);
      prepare(dnnl::convolution_backward_weights(description), description, description.diff_weights_desc());
    }
  }

  bool is_fast() const { return fast_; }
  DType operand_type() const override { return dtype_; }
  DType result_type() const override {
    return kind_ == ConvolutionKind::grad_weight ? weight_type() : dtype_;
  }

  void run(const void* first, const void* second, void* result, std::byte* workspace) override {
    const HostThreads hold(threads_);  // those the primitive was made for
    if (packs_into_workspace_) set(packed_, workspace + room_.filters);
    if (scratch_is_workspace_) set(scratch_, workspace + room_.partial);
    switch (kind_) {
      case ConvolutionKind::forward:
        place(first, second, result);
        pack();
        return execute(DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST);
      case ConvolutionKind::grad_input:
        place(result, second, const_cast<void*>(first));
        pack();
        return execute(DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST);
      case ConvolutionKind::grad_weight:
        place(first, result, const_cast<void*>(second));
        execute(DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST);
        return unpack();
    }
  }

 private:
  /// Gradients of filters are summed in f32.
  DType weight_type() const { return kind_ == ConvolutionKind::grad_weight ? DType::f32 : dtype_; }

  void prepare(dnnl::primitive convolution, const dnnl::primitive_desc_base& description,
               const Description& packed) {
    convolution_ = std::move(convolution);
    fast_ = !std::string_view(description.impl_info_str()).starts_with("ref");
    const Description scratch = description.scratchpad_desc();
    scratch_is_workspace_ = fits(scratch, room_.partial_bytes());
    scratch_ = memory(scratch, scratch_is_workspace_);
    reorders_ = packed != weight_.get_desc();
    packs_into_workspace_ = reorders_ && fits(packed, room_.filter_bytes());
    packed_ = reorders_ ? memory(packed, packs_into_workspace_) : weight_;
    if (!reorders_) return;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const bool packs = kind_ != ConvolutionKind::grad_weight;
    const dnnl::reorder::primitive_desc order(packs ? weight_ : packed_, packs ? packed_ : weight_,
                                              attributes);
    reorder_ = dnnl::reorder(order);
    reorder_scratch_ = dnnl::memory(order.scratchpad_desc(), engine_);
  }

  static bool fits(const Description& what, std::int64_t bytes) {
    return what.get_size() > 0 && what.get_size() <= static_cast<std::size_t>(bytes);
  }

  /// Of its own, or what run() gives it.
  dnnl::memory memory(const Description& description, bool is_given) const {
    return is_given ? dnnl::memory(description, engine_, nullptr) : dnnl::memory(description, engine_);
  }

  void place(const void* x, const void* weight, void* y) {
    set(x_, x);
    set(weight_, weight);
    set(y_, y);
  }

  static void set(dnnl::memory& memory, const void* data) {
    check(dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data)), "take a tensor");
  }

  void pack() {
    if (reorders_) reorder(weight_, packed_);
  }
  void unpack() {
    if (reorders_) reorder(packed_, weight_);
  }

  void reorder(const dnnl::memory& from, const dnnl::memory& to) {
    const std::array<dnnl_exec_arg_t, 3> arguments{{{DNNL_ARG_FROM, from.get()},
                                                    {DNNL_ARG_TO, to.get()},
                                                    {DNNL_ARG_SCRATCHPAD, reorder_scratch_.get()}}};
    check(dnnl_primitive_execute(reorder_.get(), stream_.get(), arguments.size(), arguments.data()),
          "reorder filters");
  }

  void execute(int x, int weight, int y) {
    const std::array<dnnl_exec_arg_t, 4> arguments{
        {{x, x_.get()}, {weight, packed_.get()}, {y, y_.get()}, {DNNL_ARG_SCRATCHPAD, scratch_.get()}}};
    check(dnnl_primitive_execute(convolution_.get(), stream_.get(), arguments.size(), arguments.data()),
          "convolve");
  }

  ConvolutionKind kind_;
  DType dtype_;
  ConvolutionScratch room_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  int threads_;
  bool fast_ = false, reorders_ = false, packs_into_workspace_ = false, scratch_is_workspace_ = false;
  dnnl::memory x_, y_, weight_, packed_, scratch_, reorder_scratch_;
  dnnl::primitive convolution_;
  dnnl::reorder reorder_;
};

std::unique_ptr<DnnlConvolution> fast_bfloat16_convolution(ConvolutionKind kind,
                                                           const ConvolutionExtents& extents,
                                                           const ConvolutionScratch& room) {
  try {
    auto convolution = std::make_unique<DnnlConvolution>(kind, extents, DType::bf16, room);
    if (convolution->is_fast()) return convolution;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) throw;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<ConvolutionPrimitive> make_convolution_primitive(ConvolutionKind kind,
                                                                 const ConvolutionExtents& extents,
                                                                 DType dtype,
                                                                 const ConvolutionScratch& room) {
  if (dtype == DType::bf16)
    if (auto convolution = fast_bfloat16_convolution(kind, extents, room)) return convolution;
  return std::make_unique<DnnlConvolution>(kind, extents, DType::f32, room);
}

}  // namespace alpa
