// The enumerators of heddle's kinds (op.h). Comparisons count on from where binary kinds end.
const uint kAbs = 0, kNegative = 1, kSign = 2, kSquare = 3, kSqrt = 4, kRsqrt = 5, kReciprocal = 6,
           kExp = 7, kExpm1 = 8, kLog = 9, kLog2 = 10, kLog10 = 11, kLog1p = 12, kSin = 13,
           kCos = 14, kTan = 15, kSinh = 16, kCosh = 17, kTanh = 18, kArcsin = 19, kArccos = 20,
           kArctan = 21, kSigmoid = 22, kSilu = 23, kGelu = 24, kGeluTanh = 25, kRelu = 26,
           kErf = 27, kFloor = 28, kCeil = 29, kRound = 30, kLogicalNot = 31, kIsnan = 32,
           kIsinf = 33, kIsfinite = 34;
bool unary_gives_bool(uint kind) {
  return kind >= kLogicalNot;
}

const uint kAdd = 0, kSubtract = 1, kMultiply = 2, kDivide = 3, kFloorDivide = 4, kRemainder = 5,
           kPower = 6, kMaximum = 7, kMinimum = 8, kLogaddexp = 9, kArctan2 = 10, kLogicalAnd = 11,
           kLogicalOr = 12, kBitwiseAnd = 13, kBitwiseOr = 14, kBitwiseXor = 15, kLeftShift = 16,
           kRightShift = 17, kEqual = 18, kNotEqual = 19, kLess = 20, kLessEqual = 21,
           kGreater = 22, kGreaterEqual = 23;
bool binary_gives_bool(uint kind) {
  return kind == kLogicalAnd || kind == kLogicalOr || kind >= kEqual;
}
