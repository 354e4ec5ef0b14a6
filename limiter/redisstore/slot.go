package redisstore

import "strings"

// slotOf is the hash slot of a key: CRC16 (XMODEM) of its hash tag, or of the whole
// key if it has none, modulo 16384. Source: Redis cluster specification, "Key
// distribution model" and "Hash tags". The client library does not export its own.
func slotOf(key string) int {
	if _, tag, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok = strings.Cut(tag, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc = crc<<8 ^ crc16[byte(crc>>8)^key[i]]
	}
	return int(crc) % 16384
}

var crc16 = func() (table [256]uint16) {
	const polynomial = 0x1021
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*polynomial
		}
		table[i] = crc
	}
	return table
}()
