// The loader's functions, found at run time.
#define VOLK_IMPLEMENTATION
#include <volk.h>
