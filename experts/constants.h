#pragma once

// Tested by: tests/unit/experts/exchange_test.cpp

/// Constants of the software costs, fitted to measurements of ai-dynamo/aiconfigurator (Apache-2.0): DeepEP on 1, 2, 4
/// and 8 boxes of H100 and four GPUs of GB200, TensorRT-LLM on 2, 4 and 16 GPUs of GB200 (docs/accuracy.md). Seconds;
/// seconds per byte of one multiprocessor pair (`byte`); parts of rates.
namespace espalier::experts::constants {

inline constexpr double us = 1e-6;
inline constexpr double ns = 1e-9;

/// DeepEP's kernels for training and prefill. A pair of multiprocessors is a channel: one sends, one receives.
struct Channels {
  double host;          ///< The host launches no faster.
  double start;         ///< Of the first token ...
  double start_hidden;  ///< ... per element of it,
  double start_expert;  ///< ... per expert of it,
  double start_box;     ///< ... per box.
  double fill;          ///< To fill the pipeline,
  double fill_tokens;   ///< half of it with so many tokens of a channel.
  double token;         ///< Per token of a channel,
  double box_byte;      ///< per byte and box that it goes to,
  double rank_byte;     ///< per byte and rank that it goes to.
  double links;         ///< Part of links' rate.
  double nics;          ///< Part of NICs' rate.
  double crowd;         ///< More than four boxes: how much longer NICs take per box beyond, up to eight.
};
inline constexpr Channels box_dispatch{30 * us,  15.69 * us, 0.6536 * ns,  0.787 * us, 0, 13.5 * us, 10.27,
                                       271 * ns, 0,          0.02072 * ns, 0.79,       1, 0};
inline constexpr Channels box_combine{0,        16.43 * us, 3.505 * ns,   0.9955 * us, 0, 9.25 * us, 91.05,
                                      590 * ns, 0,          0.01619 * ns, 0.75,        1, 0};
inline constexpr Channels boxes_dispatch{0,         21.75 * us,  0, 0,    3.012 * us, 36.7 * us, 27.5,
                                         1216 * ns, 0.0391 * ns, 0, 0.79, 0.975,      0.468};
inline constexpr Channels boxes_combine{0, 45.69 * us,  0,           0,    1.857 * us, 108.4 * us, 31.09,
                                        0, 0.0452 * ns, 0.0329 * ns, 0.79, 0.992,      0.1145};
inline constexpr double notify_start = 15 * us;  ///< Ranks of several boxes tell each other what comes:
inline constexpr double notify_box = 9 * us;     ///< per box,
inline constexpr double notify_combine = 0.018;  ///< and of the combine this part of its time.

/// DeepEP's kernels for decoding.
struct Messages {
  double start;         ///< Of the first token,
  double start_expert;  ///< per expert, whose counts are waited for,
  double start_trips;   ///< times the latency from rank to rank,
  double start_boxes;   ///< with several boxes,
  double start_box;     ///< per box of them.
  double byte;          ///< Per byte of a token of a multiprocessor.
  double slow_links;    ///< Part that links of 450 GB/s reach,
  double fast_links;    ///< of 900 GB/s; between them straight.
  double nics;
};
inline constexpr Messages message_dispatch{2.312 * us, 0.02265 * us, 8.05,   4.676 * us, 1.212 * us,
                                           0.443 * ns, 0.5617,       0.5187, 0.9546};
inline constexpr Messages message_combine{6.654 * us,   0.01131 * us, 4.756,  11.63 * us, 0.2333 * us,
                                          0.07328 * ns, 0.4872,       0.6383, 0.9265};

/// TensorRT-LLM's exchange.
struct NvlinkKernel {
  double start;           ///< Of the first token,
  double start_doubling;  ///< per doubling of the ranks.
  double hidden;          ///< Of tokens' time, so much passes meanwhile.
  double token;           ///< Per token.
  double links;           ///< Part of links' rate.
};
inline constexpr NvlinkKernel two_sided_prepare{10.83 * us, 0.803 * us, 0, 6.9 * ns, 1};
inline constexpr NvlinkKernel two_sided_dispatch{9.459 * us, 0.986 * us, 0.539 * us, 37.2 * ns, 0.561};
inline constexpr NvlinkKernel two_sided_combine{10.84 * us, 1.309 * us, 2.013 * us, 75.6 * ns, 0.515};
inline constexpr NvlinkKernel two_sided_small_combine{13.77 * us, 1.518 * us, 3.082 * us, 136.1 * ns, 0.347};
inline constexpr NvlinkKernel one_sided_dispatch{12.69 * us, 1.779 * us, 2.094 * us, 7.33 * ns, 0.622};
inline constexpr NvlinkKernel one_sided_combine{13.63 * us, 3.399 * us, 5.597 * us, 0, 0.648};

}  // namespace espalier::experts::constants
