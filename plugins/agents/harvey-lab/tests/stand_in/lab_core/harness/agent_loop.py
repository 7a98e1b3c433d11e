def run_agent(adapter, system_prompt, user_prompt, tool_executor, tools=None, max_turns=200, transcript_path=None):
    messages = [adapter.make_system_message(system_prompt), adapter.make_user_message(user_prompt)]
    reason, spent = "max_turns_exceeded", [0, 0]
    for _ in range(max_turns):
        response = adapter.chat(messages, tools)
        spent = [spent[0] + response.input_tokens, spent[1] + response.output_tokens]
        if not response.tool_calls:
            reason = "no_tool_calls"
            break
        results = [(call.id, tool_executor.execute(call.name, call.arguments)) for call in response.tool_calls]
        messages.extend(adapter.make_tool_result_messages(results))
        if tool_executor.finished:
            reason = "finish_tool"
            break
    return {"finish_reason": reason, "input_tokens": spent[0], "output_tokens": spent[1]}
