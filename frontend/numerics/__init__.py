"""What the CPU fallbacks share: exact views of floating-point bits, fixed-order sums, threshold searches."""
