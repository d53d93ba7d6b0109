#pragma once
#include "libalpa/graph/factoring.h"

namespace alpa {

// Adafactor (Shazeer and Stern, ICML'18), in the variant of optax.adafactor without momentum: for the
// gradient G of a parameter W, at its update t,
//
//     b = 1 - t^-0.8                                        what the mean squares keep (section 7.2)
//     R = b R + (1 - b) (mean of G^2 over columns + 1e-30),   C likewise over rows
//     V = R C / (mean of R)                                 (section 3; R is kept as it is, not normalised)
//     U = G / sqrt(V),   U = U / max(1, RMS(U))             (section 6: clipped by its RMS, threshold 1)
//     W = W (1 - learning rate * weight decay) - learning rate * max(1e-3, RMS(W)) U   (section 8)
//
// where means and RMS are those of whole tensors, however they are split. The weight decay is decoupled, as
// that of adamw (optax leaves out the learning rate there). A parameter of less than two dimensions has
// V = b V + (1 - b) (G^2 + 1e-30), of its own shape. Which dimensions of the others are rows and columns
// Factoring says.
//
// An update has three or four steps, so that each is an ordinary operator:
//     row sums, column sums = adafactor_sums(gradient)
//     R, C, row scale, column scale = adafactor_factors(R, C, row sums, column sums, scalars, squared norm)
//     or V, scale = adafactor_moment(V, gradient, scalars, squared norm)
//     squares = adafactor_squares(W, gradient, scales)      sums of U^2 and of W^2
//     W = adafactor(W, gradient, squares, scalars, squared norm, scales)
// with U = gradient * row scale * column scale, or gradient * scale, before it is clipped.

constexpr double kAdafactorDecayExponent = 0.8;
constexpr double kAdafactorLeastSquare = 1e-30;  ///< added to squares, so that rows of zeros have a scale
constexpr double kAdafactorLeastWeight = 1e-3;   ///< RMS that weights count as at least
constexpr double kAdafactorLargestStep = 1;      ///< RMS that U is brought down to

}  // namespace alpa
