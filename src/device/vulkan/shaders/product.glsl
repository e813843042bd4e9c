// The order in which every product of a row and a weight is summed. Include after blocks.glsl.
//
// A row's result must not depend on the rows beside it (rule 17), yet one row and many are best
// computed by different shaders. So there is one order for all of them, a function of the weight's
// dtype alone: an octet's eight products are added one by one, with fma, from zero; a unit's four
// octets are added in order; and units are added to the total in order. Lanes that share a sum
// leave octets to one that adds them up in this order; lanes that hold a sum keep a total, a unit's
// and an octet's. Beyond the end of a row everything counts as zeros, products too.
//
// fma is written out, so that no compiler can fuse in one shader and not in another. (A device
// without a fused one multiplies and adds, everywhere.) No addition here has a product as its
// operand but inside fma.
//
// Forms for cooperative matrices go beside these: they sum in an order that the driver chooses, so
// a device that has them must use them for one row, too.
#ifndef HEDDLE_PRODUCT
#define HEDDLE_PRODUCT

float octet_sum(Octet w, Octet x) {
  float sum = fma(w.a.x, x.a.x, 0.0);
  sum = fma(w.a.y, x.a.y, sum);
  sum = fma(w.a.z, x.a.z, sum);
  sum = fma(w.a.w, x.a.w, sum);
  sum = fma(w.b.x, x.b.x, sum);
  sum = fma(w.b.y, x.b.y, sum);
  sum = fma(w.b.z, x.b.z, sum);
  return fma(w.b.w, x.b.w, sum);
}

#endif
