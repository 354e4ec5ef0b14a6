// Where a login is asked for a challenge, this has it solved by solver.js and posts
// the form again, with what was typed. All else is as without it: the server draws
// every page, and this only puts it in place.
'use strict';

const solve = ({token, bits}) => new Promise((resolve, reject) => {
	const worker = new Worker('/solver.js');
	worker.onmessage = ({data}) => { worker.terminate(); resolve(data); };
	worker.onerror = () => { worker.terminate(); reject(new Error('no worker')); };
	worker.postMessage({token, bits: Number(bits)});
});

const challengeOf = (page) => page.querySelector('#challenge')?.dataset;

async function post(form) {
	const body = new URLSearchParams(new FormData(form));
	let asked = challengeOf(document);
	for (let solved = 0; ; solved++) {
		if (asked) {
			document.querySelector('#solving').hidden = false;
			body.set('challenge', await solve(asked));
		}
		const response = await fetch(form.action, {method: 'POST', body, headers: {Accept: 'text/html'}});
		if (response.redirected) {
			location.assign(response.url);
			return;
		}
		const page = new DOMParser().parseFromString(await response.text(), 'text/html');
		asked = challengeOf(page);
		if (asked && solved < 2) continue; // a first one, or one in place of an expired one
		document.title = page.title;
		document.querySelector('main').replaceWith(page.querySelector('main'));
		listen()?.querySelector('#password').focus();
		return;
	}
}

function listen() {
	const form = document.querySelector('form[action="/login"]');
	form?.addEventListener('submit', async (event) => {
		event.preventDefault();
		const button = form.querySelector('button');
		button.disabled = true;
		try {
			await post(form);
		} catch {
			form.submit(); // the server says what is wrong
		} finally {
			button.disabled = false;
		}
	});
	return form;
}

listen();
