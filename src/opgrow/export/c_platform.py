"""What exported C needs to know of the processor: where tables are, and how large its types are."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["INLINE", "flash_macros", "size_checks"]

#: Small functions are copied to where they are called, unless code is to be small.
INLINE = """\
#if defined(__GNUC__) && !defined(__OPTIMIZE_SIZE__)
#define INLINE inline __attribute__((always_inline))
#else
#define INLINE inline
#endif
"""

#: How a value of each type is read from the flash of an AVR.
_READ = {
    "float": "pgm_read_float(place)",
    "int8_t": "((int8_t)pgm_read_byte(place))",
    "uint8_t": "pgm_read_byte(place)",
    "int16_t": "((int16_t)pgm_read_word(place))",
    "uint16_t": "pgm_read_word(place)",
    "int32_t": "((int32_t)pgm_read_dword(place))",
}
_BYTES = {"float": 4, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4}


def flash_macros(readers: Sequence[tuple[str, str]], structures: bool = False) -> str:
    """``IN_FLASH`` for tables and macros that read them: on AVR they stay in flash.

    ``readers``, pairs of a name and a type, read numbers, and ``COPY`` a structure.
    """
    macros = dict(readers)
    avr = "".join(f"#define {name}(place) {_READ[kind]}\n" for name, kind in macros.items())
    plain = "".join(f"#define {name}(place) (*(place))\n" for name in macros)
    if structures:
        avr += "#define COPY(target, place) memcpy_P(&(target), (place), sizeof(target))\n"
        plain += "#define COPY(target, place) ((target) = *(place))\n"
    return (
        "/* An AVR copies constants to its RAM, unless they are read by instructions of their own. */\n"
        f"#ifdef __AVR__\n#include <avr/pgmspace.h>\n#define IN_FLASH PROGMEM\n{avr}"
        f"#else\n#define IN_FLASH\n{plain}#endif\n"
    )


def size_checks(kinds: Sequence[str]) -> str:
    """Declarations that no compiler accepts where a type has another size; int has 16 bits or more."""
    return "".join(
        f"typedef char {kind}_has_{_BYTES[kind]}_bytes[sizeof({kind}) == {_BYTES[kind]} ? 1 : -1];\n"
        for kind in dict.fromkeys(kinds)
    )
