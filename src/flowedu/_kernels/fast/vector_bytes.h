/* FE_VBYTES: bytes of a vector register in the target instruction set. */
#ifndef FLOWEDU_VECTOR_BYTES_H
#define FLOWEDU_VECTOR_BYTES_H
#if defined(__AVX512F__)
#define FE_VBYTES 64
#elif defined(__AVX2__)
#define FE_VBYTES 32
#else
#define FE_VBYTES 16
#endif
#endif
