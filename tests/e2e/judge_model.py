#!/usr/bin/env python3
"""A model endpoint for tests of judges: answers what a script says, in all four wire formats.

Usage: judge_model.py FOLDER

Listens on a port of 127.0.0.1 that it writes to FOLDER/port. Each request takes the first line of FOLDER/script, a JSON
object; without one it is {"score": 1, "rationale": "fine"}:
  status, headers, text: answered as they are     drop: the connection ends
  hang: no answer as long as the client waits     score, rationale: a verdict
  message: what a simulated user says, when one is asked for; "go on" once, and then the end, unless given
  echo: a verdict whose rationale is the question's text between two of its words
Requests are written to FOLDER/requests, one JSON object a line.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER = sys.argv[1]


def question(body):
    if 'contents' in body:
        return body['contents'][0]['parts'][0]['text']
    if 'input' in body:
        return body['input'][-1]['content']
    return body['messages'][-1]['content']


def wants_reply(body):
    return '"reply"' in json.dumps([body.get(key) for key in ('tools', 'text', 'response_format')]) or \
        '"message"' in json.dumps(body.get('generationConfig'))


def answer(path, verdict):
    text = json.dumps(verdict)
    if path.endswith('/messages'):
        return {'model': 'as-served', 'content': [{'type': 'tool_use', 'id': 't', 'name': 'reply' if 'message' in verdict else 'verdict', 'input': verdict}],
                'stop_reason': 'tool_use', 'usage': {'input_tokens': 1000, 'output_tokens': 100}}
    if path.endswith('/responses'):
        return {'model': 'as-served', 'status': 'completed', 'usage': {'input_tokens': 1000, 'output_tokens': 100},
                'output': [{'type': 'message', 'content': [{'type': 'output_text', 'text': text}]}]}
    if path.endswith('/chat/completions'):
        return {'model': 'as-served', 'usage': {'prompt_tokens': 1000, 'completion_tokens': 100},
                'choices': [{'message': {'content': text}, 'finish_reason': 'stop'}]}
    return {'modelVersion': 'as-served', 'usageMetadata': {'promptTokenCount': 1000, 'candidatesTokenCount': 100},
            'candidates': [{'content': {'parts': [{'text': text}]}, 'finishReason': 'STOP'}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def send(self, status, headers, data):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header('content-length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['content-length'])))
        with open(FOLDER + '/requests', 'a', encoding='utf-8') as file:
            file.write(json.dumps({'path': self.path, 'headers': dict(self.headers), 'body': body}) + '\n')
        script = self.next_line()
        if script.get('drop'):
            self.close_connection = True
        elif script.get('hang'):
            self.rfile.read(1)  # until the client gives up
            self.close_connection = True
        elif 'status' in script or 'text' in script:
            self.send(script.get('status', 200), script.get('headers', {}), script.get('text', '').encode())
        else:
            rationale = script.get('rationale', 'fine')
            if 'echo' in script:
                begin, end = script['echo']
                text = question(body)
                rationale = text[text.index(begin):text.index(end) + len(end)]
            verdict = {'score': script.get('score', 1), 'rationale': rationale}
            if wants_reply(body):
                verdict = {'message': script.get('message', '<<<END>>>' if 'user: go on' in question(body) else 'go on')}
            self.send(200, {'content-type': 'application/json'}, json.dumps(answer(self.path, verdict)).encode())

    def next_line(self):
        try:
            with open(FOLDER + '/script', encoding='utf-8') as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            return {}
        with open(FOLDER + '/script', 'w', encoding='utf-8') as file:
            file.write('\n'.join(lines[1:]))
        return json.loads(lines[0]) if lines and lines[0] else {}


def main():
    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    with open(FOLDER + '/port.new', 'w', encoding='ascii') as file:
        file.write(str(server.server_address[1]))
    os.rename(FOLDER + '/port.new', FOLDER + '/port')
    server.serve_forever()


if __name__ == '__main__':
    main()
