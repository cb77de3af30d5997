#pragma once
// PyCUDA's arrays include this header. Complex numbers are not simulated.
namespace pycuda {
template <class T> struct complex { T re, im; };
}
