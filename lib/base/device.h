/* SPDX-License-Identifier: Apache-2.0
 *
 * FT_HD marks inline functions that the CUDA compiler compiles for host and device, so
 * that what both compute is written once.
 */
#ifndef FT_BASE_DEVICE_H
#define FT_BASE_DEVICE_H

#ifdef __CUDACC__
#define FT_HD __host__ __device__
#else
#define FT_HD
#endif

#endif
