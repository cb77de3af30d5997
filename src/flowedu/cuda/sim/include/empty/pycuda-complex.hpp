#pragma once
// PyCUDA's arrays of numbers include this; complex ones are not simulated.
namespace pycuda {
template <class T> struct complex { T re, im; };
}
