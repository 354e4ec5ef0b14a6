// A worker that looks for a number n such that the SHA-256 of "token.n" begins with
// as many zero bits as it is told. It is this browser's price for one more login;
// see package proofofwork for what that is worth.
'use strict';

const K = new Int32Array(64);
const H = new Int32Array(8);
for (let prime = 2, i = 0; i < 64; prime++) {
	let divides = false;
	for (let d = 2; d * d <= prime; d++) divides ||= prime % d === 0;
	if (divides) continue;
	const fraction = (x) => (x - Math.floor(x)) * 2 ** 32 | 0;
	if (i < 8) H[i] = fraction(Math.sqrt(prime));
	K[i++] = fraction(Math.cbrt(prime));
}

const W = new Int32Array(64);

// compress takes one block of 64 bytes into state.
function compress(state, block, at) {
	for (let i = 0; i < 16; i++, at += 4) {
		W[i] = block[at] << 24 | block[at + 1] << 16 | block[at + 2] << 8 | block[at + 3];
	}
	for (let i = 16; i < 64; i++) {
		const x = W[i - 15], y = W[i - 2];
		const s0 = (x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3;
		const s1 = (y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10;
		W[i] = W[i - 16] + s0 + W[i - 7] + s1 | 0;
	}
	let a = state[0], b = state[1], c = state[2], d = state[3];
	let e = state[4], f = state[5], g = state[6], h = state[7];
	for (let i = 0; i < 64; i++) {
		const s1 = (e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7);
		const t1 = h + s1 + (e & f ^ ~e & g) + K[i] + W[i] | 0;
		const s0 = (a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10);
		const t2 = s0 + (a & b ^ a & c ^ b & c) | 0;
		h = g; g = f; f = e; e = d + t1 | 0; d = c; c = b; b = a; a = t1 + t2 | 0;
	}
	state[0] += a; state[1] += b; state[2] += c; state[3] += d;
	state[4] += e; state[5] += f; state[6] += g; state[7] += h;
}

// solve counts up. Only the last block of the text changes from one number to the
// next, as long as they have as many digits in it.
function solve(token, bits) {
	const prefix = token + '.';
	const whole = prefix.length >> 6 << 6; // of blocks that never change
	const start = H.slice(), state = new Int32Array(8), blocks = new Uint8Array(192);
	for (let i = 0; i < whole; i++) blocks[i] = prefix.charCodeAt(i);
	for (let at = 0; at < whole; at += 64) compress(start, blocks, at);
	for (let n = 0; ; n++) {
		const text = prefix + n;
		const length = text.length - whole, last = (length + 8 >> 6 << 6) + 64;
		blocks.fill(0, 0, last);
		for (let i = 0; i < length; i++) blocks[i] = text.charCodeAt(whole + i);
		blocks[length] = 0x80;
		blocks[last - 2] = text.length >>> 5;
		blocks[last - 1] = text.length << 3;
		state.set(start);
		for (let at = 0; at < last; at += 64) compress(state, blocks, at);
		if (Math.clz32(state[0]) >= bits) return text;
	}
}

self.onmessage = ({data}) => self.postMessage(solve(data.token, data.bits));
