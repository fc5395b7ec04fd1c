/* Arrays of float32 as JSON: the shortest decimals that are read as the same numbers, as orjson writes them.
 *
 * Raffaello Giulietti, "The Schubfach way to render doubles" (2021), for float32.
 */
#include <stdbool.h>
#include <string.h>

#include "kernels.h"

enum { LEAST_POWER = -31, MOST_ZEROS = 5, MOST_WHOLE = 13, BLOCK = 64 };

/* 10^k from k = LEAST_POWER on, as 64 bits of its fraction, rounded up: the upper and the lower half. */
static const uint32_t UPPER[] = {
    0x81ceb32c, 0xa2425ff7, 0xcad2f7f5, 0xfd87b5f2, 0x9e74d1b7, 0xc6120625, 0xf79687ae, 0x9abe14cd, 0xc16d9a00,
    0xf1c90080, 0x971da050, 0xbce50864, 0xec1e4a7d, 0x9392ee8e, 0xb877aa32, 0xe69594be, 0x901d7cf7, 0xb424dc35,
    0xe12e1342, 0x8cbccc09, 0xafebff0b, 0xdbe6fece, 0x89705f41, 0xabcc7711, 0xd6bf94d5, 0x8637bd05, 0xa7c5ac47,
    0xd1b71758, 0x83126e97, 0xa3d70a3d, 0xcccccccc, 0x80000000, 0xa0000000, 0xc8000000, 0xfa000000, 0x9c400000,
    0xc3500000, 0xf4240000, 0x98968000, 0xbebc2000, 0xee6b2800, 0x9502f900, 0xba43b740, 0xe8d4a510, 0x9184e72a,
    0xb5e620f4, 0xe35fa931, 0x8e1bc9bf, 0xb1a2bc2e, 0xde0b6b3a, 0x8ac72304, 0xad78ebc5, 0xd8d726b7, 0x87867832,
    0xa968163f, 0xd3c21bce, 0x84595161, 0xa56fa5b9, 0xcecb8f27, 0x813f3978, 0xa18f07d7, 0xc9f2c9cd, 0xfc6f7c40,
    0x9dc5ada8, 0xc5371912, 0xf684df56, 0x9a130b96, 0xc097ce7b, 0xf0bdc21a, 0x96769950, 0xbc143fa4, 0xeb194f8e,
    0x92efd1b8, 0xb7abc627, 0xe596b7b0, 0x8f7e32ce, 0xb35dbf82};
static const uint32_t LOWER[] = {
    0x4b43fcf5, 0x5e14fc32, 0x359a3b3f, 0x8300ca0e, 0x91e07e49, 0x76589ddb, 0xd3eec552, 0x44753b53, 0x95928a28,
    0xbaf72cb2, 0x74da7bef, 0x92111aeb, 0xb69561a6, 0x921d5d08, 0x36a4b44a, 0xc44de15c, 0x3ab0acda, 0x095cd810,
    0x4bb40e14, 0x6f5088cc, 0xcb24aaff, 0xbdedd5bf, 0x36b4a598, 0x8461cefd, 0xe57a42bd, 0xaf6c69b6, 0x1b478424,
    0xe219652c, 0x8d4fdf3c, 0x70a3d70b, 0xcccccccd, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
    0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
    0x80000000, 0xa0000000, 0x04000000, 0xc5000000, 0x76400000, 0x89e80000, 0xac620000, 0x177a8000, 0x6eac9000,
    0x0a57b400, 0xcceda100, 0x401484a0, 0x9019a5c8, 0xf4200f3a, 0xf8940985, 0x36b90be6, 0x04674edf, 0x45812297,
    0x2b70b59e, 0x364ce306, 0xc3e01bc7, 0x3a6c115d, 0xc90715b4, 0xbb48db21, 0xb50d88f5, 0xe250eb32, 0x1ae525fe,
    0xd0cf37bf, 0x050305ae, 0xc643c71a, 0x7bea5c70, 0x1ae4f38c};

typedef struct {
  uint64_t others[BLOCK]; /* the second to the ninth digit, a byte each, that of the second in the lowest byte */
  uint32_t first[BLOCK];  /* digit; not 0 but for 0 */
  int32_t whole[BLOCK];   /* where the point stands: digits before it */
} Decimals;

/* The upper 32 bits of a product with a power. The lowest is set if anything is left below. */
static inline uint32_t scaled(uint64_t upper, uint64_t lower, uint32_t c) {
  uint64_t product = upper * c + (lower * c >> 32);
  return (uint32_t)(product >> 32) | ((uint32_t)product > 1);
}

/* Without branches, so that a compiler computes several at a time. */
static void find_decimals(const uint32_t* numbers, Decimals* found) {
  for (int i = 0; i < BLOCK; i++) {
    uint32_t fraction = numbers[i] & 0x7fffff;
    int exponent = numbers[i] >> 23 & 255;
    uint32_t c = fraction | (uint32_t)(exponent > 0) << 23, odd = c & 1;
    int q = exponent - (exponent > 0) - 149;                      /* the number is c 2^q */
    uint32_t closer = (uint32_t)(fraction == 0) & (exponent > 1); /* the next smaller number is half as far */
    int k = (q * 1262611 - (int)closer * 524031) >> 22;
    int shift = q + ((-k * 1741647) >> 19) + 1;
    uint32_t upper = UPPER[-k - LEAST_POWER], lower = LOWER[-k - LEAST_POWER];
    uint32_t low = scaled(upper, lower, (4 * c - 2 + closer) << shift) + odd;
    uint32_t value = scaled(upper, lower, (4 * c) << shift);
    uint32_t high = scaled(upper, lower, (4 * c + 2) << shift) - odd;

    uint32_t units = value / 4, tens = units / 10, middle = 4 * units + 2;
    uint32_t below = low <= 4 * units, above = 4 * units + 4 <= high;
    uint32_t tens_below = low <= 40 * tens, tens_above = 40 * tens + 40 <= high;
    uint32_t fewer = (uint32_t)(units >= 10) & (tens_below ^ tens_above); /* one digit less will do */
    uint32_t nearest = (uint32_t)(value > middle) | ((uint32_t)(value == middle) & units);
    uint32_t up = below ^ above ? above : nearest & 1;
    uint32_t digits = fewer ? tens + tens_above : units + up;

    int point = k + (int)fewer + 9; /* of nine digits */
    point -= digits < 100000 ? 4 : 0, digits *= digits < 100000 ? 10000 : 1;
    point -= digits < 100000 ? 4 : 0, digits *= digits < 100000 ? 10000 : 1;
    point -= digits < 10000000 ? 2 : 0, digits *= digits < 10000000 ? 100 : 1;
    point -= digits < 100000000 ? 1 : 0, digits *= digits < 100000000 ? 10 : 1;
    uint32_t first = digits / 100000000, left = digits - 100000000 * first;
    uint32_t four = left / 10000, rest = left - 10000 * four;
    uint64_t fours = four | (uint64_t)rest << 32;
    uint64_t high_pairs = (fours * 10486 >> 20) & 0x0000007f0000007f;
    uint64_t pairs = high_pairs | (fours - 100 * high_pairs) << 16;
    uint64_t in_tens = (pairs * 103 >> 10) & 0x000f000f000f000f;
    found->others[i] = in_tens | (pairs - 10 * in_tens) << 8;
    found->first[i] = first;
    found->whole[i] = point;
  }
}

/* Of 1 and more, or of less than 10^-MOST_ZEROS / 10: `n` digits, the point behind `whole` of them. */
static char* write_other(char* out, const char digits[16], int n, int whole) {
  bool plain = 0 < whole && whole <= MOST_WHOLE;
  int before = plain ? whole : 1, exponent = whole - 1, size = exponent < 0 ? -exponent : exponent;
  memcpy(out, digits, 16);
  if (n > before || plain) {
    out[before] = '.';
    memcpy(out + before + 1, digits + before, 9);
  }
  out += n > before ? n + 1 : plain ? before + 2 : 1;
  if (plain) return out;
  *out++ = 'e';
  *out++ = exponent < 0 ? '-' : '+';
  if (size >= 10) *out++ = (char)('0' + size / 10);
  *out++ = (char)('0' + size % 10);
  return out;
}

static char* write_block(char* out, const uint32_t* numbers, int count, const Decimals* found) {
  for (int i = 0; i < count; i++) {
    uint32_t size = numbers[i] & 0x7fffffff;
    if (size >= 0x7f800000) {
      memcpy(out, "null,", 5);
      out += 5;
      continue;
    }
    uint64_t others = found->others[i] | 0x3030303030303030;
    char first = (char)('0' + found->first[i]);
    int n = found->others[i] ? 9 - __builtin_clzll(found->others[i]) / 8 : 1; /* without zeros at the end */
    int whole = found->whole[i];
    *out = '-';
    out += numbers[i] >> 31;
    if (size == 0) {
      memcpy(out, "0.0", 3);
      out += 3;
    } else if (-MOST_ZEROS <= whole && whole <= 0) {
      memcpy(out, "0.00000", 8);
      out += 2 - whole;
      *out = first;
      memcpy(out + 1, &others, 8);
      out += n;
    } else {
      char digits[16] = "000000000000000";
      digits[0] = first;
      memcpy(digits + 1, &others, 8);
      out = write_other(out, digits, n, whole);
    }
    *out++ = ',';
  }
  return out;
}

int64_t write_json(const float* x, int64_t rows, int64_t D, int64_t stride, char* json) {
  Decimals found;
  uint32_t numbers[BLOCK] = {0};
  char* out = json;
  *out++ = '[';
  for (int64_t row = 0; row < rows; row++, x += stride) {
    *out++ = '[';
    for (int64_t d = 0; d < D; d += BLOCK) {
      int count = D - d < BLOCK ? (int)(D - d) : BLOCK; /* behind them stand numbers of before */
      memcpy(numbers, x + d, (size_t)count * sizeof *numbers);
      find_decimals(numbers, &found);
      out = write_block(out, numbers, count, &found);
    }
    out -= D > 0; /* the last comma */
    *out++ = ']';
    *out++ = ',';
  }
  out -= rows > 0;
  *out++ = ']';
  return out - json;
}
