#pragma once

namespace alpa {

/// A prepared product of bf16 matrices with a result in bf16 or f32.
class Bfloat16Product {
 public:
  virtual ~Bfloat16Product() = default;
  virtual void run(const void* left, const void* right, void* result, bool accumulate) = 0;
};

}  // namespace alpa
